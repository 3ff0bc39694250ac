//! Instances that come, and that say they are alive.

use std::time::Duration;

use longmen_core::model::UpstreamList;
use longmen_db::repository::binding::{self, Bound, NewBinding, UseDiscovery};
use longmen_db::repository::discovery::NewDiscovery;
use longmen_db::repository::instance::{self, InstanceKey};
use longmen_db::repository::upstream::{self, NewUpstream, Origin, UpstreamRow};
use longmen_db::{Actor, Tx};
use tokio::net::TcpStream;

use super::request::UriRegister;
use super::target::{Target, inside};
use crate::api::discovery::LOCAL;
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::instances::CLIENT;
use crate::registration::held::{DOWN, UP, revived};
use crate::registration::{FAREWELL, Instance, millis, mirror};

/// Share of the traffic of an instance that registers.
const WEIGHT: i32 = 50;

/// Settings of an instance that registers, as the reference writes them.
const PROPS: &str = "{\"warmupTime\":\"10\"}";

/// The largest report about a machine that is stored; a larger one is left out.
const MAX_INFO_BYTES: usize = 8_192;

/// How long a probe within a call may take: the Go SDK waits a second for the answer.
const PROBE: Duration = Duration::from_millis(300);

/// Stores an instance, with its selector where that is missing. One that cannot be reached is stored
/// as down, and brought in by a later probe or heartbeat.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn register(context: &Context, request: &UriRegister) -> ApiResult<()> {
    let (_, instance) = request.instance()?;
    context.state().registration().arrived(&instance);
    forget_farewell(context, &instance).await?;
    let up = !context.state().config().register.checked || answers(&instance.url).await;
    bring_in(context, request, &instance, if up { UP } else { DOWN }, Missing::Make).await
}

/// An instance is alive. Nothing is written where that is known.
///
/// # Errors
/// As [`register`].
pub(super) async fn beat(context: &Context, request: &UriRegister) -> ApiResult<()> {
    let (_, instance) = request.instance()?;
    if context.state().registration().is_departed(&instance) {
        return Ok(());
    }
    context.state().registration().beat(&instance);
    report(context, request, &instance);
    let mut tx = context.read().await?;
    let known = find(&mut tx, &instance).await?;
    if known.is_some_and(|row| revived(&row).is_none()) {
        return Ok(());
    }
    // It may have said good-bye to another admin.
    if instance::said_farewell(&mut tx, instance.farewell(), millis(FAREWELL)).await? {
        return Ok(());
    }
    drop(tx);
    bring_in(context, request, &instance, UP, Missing::LeaveOut).await
}

/// Lists the instance among all that are alive.
fn report(context: &Context, request: &UriRegister, instance: &Instance) {
    let key = InstanceKey {
        namespace_id: instance.namespace_id.clone(),
        ip: request.host.as_deref().unwrap_or_default().trim().to_owned(),
        port: request.port.unwrap_or_default().to_string(),
        kind: CLIENT.to_owned(),
    };
    let mut info = request.instance_info.clone().unwrap_or_default();
    if info.len() > MAX_INFO_BYTES {
        info.clear();
    }
    context.state().publisher().instances().beat(key, info);
}

/// Forgets a good-bye, to whichever admin it was said.
async fn forget_farewell(context: &Context, instance: &Instance) -> ApiResult<()> {
    let one = instance.farewell();
    let mut tx = context.read().await?;
    let said = instance::said_farewell(&mut tx, one, millis(FAREWELL)).await?;
    drop(tx);
    if said {
        let mut uow = context.state().store().begin(Actor::system()).await?;
        instance::forget_farewell(&mut uow, one).await?;
        uow.commit().await?;
    }
    Ok(())
}

/// What to do about a selector that is not there. A heartbeat does not bring back what a person
/// deleted; a start of the service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    LeaveOut,
}

async fn find(tx: &mut Tx, instance: &Instance) -> ApiResult<Option<UpstreamRow>> {
    let Instance { namespace_id, plugin, selector, url } = instance;
    Ok(upstream::find_of_selector(tx, namespace_id, plugin, selector, url).await?)
}

async fn bring_in(
    context: &Context,
    request: &UriRegister,
    instance: &Instance,
    status: i32,
    missing: Missing,
) -> ApiResult<()> {
    let client = request.app_name.as_deref().unwrap_or_default();
    let namespace = instance.namespace_id.as_str();
    let (mut target, linked) = Target::hold(context, client, namespace, &[instance.plugin]).await?;
    let there = match linked.first() {
        Some(plugin) => target.find_selector(plugin, &instance.selector).await?,
        None => None,
    };
    if there.is_none() && missing == Missing::LeaveOut {
        return Err(ApiError::refused(format!(
            "contextPath: {} of {namespace} has no selector in {}, expected a registration before \
             its heartbeats",
            instance.selector, instance.plugin
        )));
    }
    let Some(selector) = target.selectors(&linked, &instance.selector).await?.pop() else {
        return Ok(());
    };
    let Some((handler_id, before)) = bound(&mut target, instance, &selector.id).await? else {
        return Ok(());
    };
    let uow = &mut target.uow;
    match upstream::find_by_url(uow, &handler_id, &instance.url).await? {
        None => {
            let new = NewUpstream {
                namespace_id: namespace.to_owned(),
                protocol: request.scheme().map(str::to_owned),
                url: instance.url.clone(),
                status,
                weight: WEIGHT,
                props: Some(PROPS.to_owned()),
                origin: Origin::Registered,
                created_ms: None,
            };
            upstream::insert(uow, &handler_id, &[new]).await.map_err(inside)?;
        }
        Some(row) => update(&mut target, request, status, &row).await?,
    }
    let uow = &mut target.uow;
    if let Some(after) = binding::load(uow, &handler_id).await?
        && after.upstreams != before
    {
        after.record_upstreams(uow, &before);
        mirror::follow(uow, &selector, &after.upstreams).await?;
    }
    target.commit().await
}

/// Brings a row up to what its instance says.
async fn update(
    target: &mut Target<'_>,
    request: &UriRegister,
    status: i32,
    row: &UpstreamRow,
) -> ApiResult<()> {
    let uow = &mut target.uow;
    if row.origin == Origin::Registered && row.protocol.as_deref() != request.scheme() {
        upstream::set_protocol(uow, &row.id, request.scheme()).await?;
    }
    if status == UP
        && let Some(origin) = revived(row)
    {
        upstream::set_state(uow, &row.id, UP, origin).await?;
    }
    Ok(())
}

/// The handler of a selector, held, and its list; made where the selector is not bound. None where a
/// registry says who is there.
async fn bound(
    target: &mut Target<'_>,
    instance: &Instance,
    selector_id: &str,
) -> ApiResult<Option<(String, UpstreamList)>> {
    let uow = &mut target.uow;
    let bound = Bound::Selector(selector_id);
    let found = binding::find_of(uow, bound).await?;
    let row = match found {
        Some(row) if row.discovery.discovery_type != LOCAL => {
            tracing::debug!(selector_id, "an instance registered whose selector has a registry");
            return Ok(None);
        }
        Some(row) => row,
        None => binding::insert(uow, bound, &default_binding(instance)).await.map_err(inside)?,
    };
    let held = binding::load_for_update(uow, &row.handler.id).await?;
    Ok(held.map(|held| (row.handler.id, held.upstreams)))
}

fn default_binding(instance: &Instance) -> NewBinding {
    NewBinding {
        discovery: UseDiscovery::New(NewDiscovery {
            discovery_name: format!("{}_default_discovery", instance.plugin),
            discovery_level: "0".to_owned(),
            plugin_name: instance.plugin.to_owned(),
            namespace_id: instance.namespace_id.clone(),
            discovery_type: LOCAL.to_owned(),
            server_list: String::new(),
            props: Some("{}".to_owned()),
        }),
        plugin_name: instance.plugin.to_owned(),
        handler: "{}".to_owned(),
        listener_node: None,
        props: Some("{}".to_owned()),
        upstreams: Vec::new(),
    }
}

async fn answers(url: &str) -> bool {
    matches!(tokio::time::timeout(PROBE, TcpStream::connect(url)).await, Ok(Ok(_)))
}
