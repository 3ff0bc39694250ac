//! The request head: protocol, then plugin by plugin.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};

use super::{DriverOptions, tunnel};
use crate::body::Body;
use crate::chain::view::View;
use crate::chain::{Flow, Hit, HitRef, HookResult, RequestContext, RpcType};
use crate::condition::{RequestView, canonical};
use crate::error::{ErrorStatus, Fault, GatewayError, Reason};
use crate::matcher::{Live, Search};
use crate::model::PluginClass;
use crate::snapshot::{PluginPart, Selected, SelectorPart, Snapshot};
use crate::upstream::strip_hop_by_hop;

/// Decides the protocol: the client's word where that is honoured, a websocket handshake, what
/// metadata says of the path, else HTTP.
///
/// Source: ShenYu 2.7.1, global plugin. There any word a client sends is taken.
pub(crate) fn protocol(
    cx: &mut RequestContext,
    snapshot: &Snapshot,
    options: &DriverOptions,
) -> Result<(), GatewayError> {
    if options.rpc_type_header
        && let Some(named) = cx.head.headers.get("rpc_type").filter(|value| !value.is_empty())
    {
        let name = named.to_str().unwrap_or_default();
        if !options.rpc_types.contains(&name) {
            let text = format!("rpc_type {name:?} is not one of {}", options.rpc_types.join(", "));
            return Err(GatewayError::new(
                Fault::Client,
                Reason::UnknownRpcType,
                StatusCode::BAD_REQUEST,
                text,
            ));
        }
        cx.rpc_type = rpc_type(name);
        return Ok(());
    }
    let upgrade = cx.head.headers.get(UPGRADE);
    if upgrade.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        // Half a handshake is nothing that any route could serve. Where the reference's answers are
        // kept, its "no selector" comes first.
        if options.error_status == ErrorStatus::Standard {
            tunnel::check_handshake(cx)?;
        }
        cx.rpc_type = RpcType::WebSocket;
        return Ok(());
    }
    if let Some(metadata) = snapshot.metadata.find(cx.raw_path()) {
        cx.rpc_type = rpc_type(&metadata.rpc_type);
        cx.metadata = Some(metadata.clone());
    }
    Ok(())
}

fn rpc_type(name: &str) -> RpcType {
    match name {
        "http" | "" => RpcType::Http,
        "websocket" => RpcType::WebSocket,
        other => RpcType::Other(other.into()),
    }
}

/// Takes away what was meant for this connection alone, before a plugin runs: what plugins set is
/// not the client's to take away by naming it in `Connection`. Of a websocket handshake `Upgrade`
/// stays, and of `Connection` that word.
pub(crate) fn keep_end_to_end(cx: &mut RequestContext) {
    let headers = &mut cx.head.headers;
    if cx.rpc_type != RpcType::WebSocket {
        return strip_hop_by_hop(headers);
    }
    let upgrade = headers.remove(UPGRADE);
    let asked = headers.get_all(CONNECTION).iter().any(|value| {
        value.to_str().is_ok_and(|value| {
            value.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
        })
    });
    strip_hop_by_hop(headers);
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
    }
    if asked {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
}

/// Runs the plugins in order; an answer ends the walk.
pub(super) async fn run(
    cx: &mut RequestContext,
    snapshot: &Snapshot,
) -> Result<Option<Response<Body>>, GatewayError> {
    let raw_form = canonical(cx.raw_path());
    for part in &snapshot.plugins {
        if let Flow::Respond(response) = one(cx, part, None).await? {
            return Ok(Some(response));
        }
        if let Some(path) = other_form(cx, part, raw_form.as_deref())
            && let Flow::Respond(response) = one(cx, part, Some(&path)).await?
        {
            return Ok(Some(response));
        }
    }
    Ok(None)
}

/// The form of the path on which a guard is asked once more: it judges both forms of the path that it
/// matches on, and whichever refuses, counts. `raw_form` is the canonical form of the raw path, where
/// that is another one.
pub(crate) fn other_form<'p>(
    cx: &RequestContext,
    part: &PluginPart,
    raw_form: Option<&'p str>,
) -> Option<Cow<'p, str>> {
    if part.class != PluginClass::Guard {
        return None;
    }
    match cx.effective_path() {
        Cow::Borrowed(_) => raw_form.map(Cow::Borrowed),
        // A plugin moved it.
        Cow::Owned(moved) => canonical(&moved).map(Cow::Owned),
    }
}

/// What becomes of a request at one plugin, before anything of the plugin runs.
pub(crate) enum Found<'s> {
    /// The plugin does not look at such requests, or is missing and was not meant for this one.
    Nothing,
    /// No selector applies.
    NoSelector,
    /// A selector applies, but none of its rules.
    NoRule(&'s Arc<SelectorPart>),
    /// Both.
    Hit(&'s Arc<SelectorPart>, HitRef<'s>),
    /// The plugin is a guard that was meant for this request and cannot run.
    Unavailable,
}

async fn one(cx: &mut RequestContext, part: &PluginPart, path: Option<&str>) -> HookResult {
    let found = {
        let view = match path {
            None => View::new(cx),
            Some(path) => View::canonical(cx, path),
        };
        find(cx, part, &view, &Live)
    };
    let Some(plugin) = &part.run else {
        return match found {
            Found::Unavailable => Err(unavailable(part)),
            _ => Ok(Flow::Continue),
        };
    };
    let hit = match found {
        Found::Nothing => return Ok(Flow::Continue),
        Found::Unavailable => return Err(unavailable(part)),
        Found::NoSelector => return plugin.no_selector(cx),
        Found::NoRule(_) => return plugin.no_rule(cx),
        Found::Hit(_, hit) => hit,
    };
    // Registered before it runs: cut off while it waits, the request is completed all the same.
    let later = hit.rule.parts.later();
    if later {
        cx.exchange.hits.push(Hit {
            plugin: plugin.clone(),
            config: hit.config.clone(),
            selector: hit.selector.clone(),
            rule: hit.rule.clone(),
            state: None,
        });
    }
    cx.keeps_in_hit = later;
    let flow = plugin.request_head(hit, cx).get().await;
    cx.keeps_in_hit = false;
    flow
}

/// Chooses selector and rule of a plugin. Nothing of the plugin runs but [`Plugin::applies`].
///
/// [`Plugin::applies`]: crate::chain::Plugin::applies
pub(crate) fn find<'s>(
    cx: &RequestContext,
    part: &'s PluginPart,
    view: &impl RequestView,
    search: &impl Search,
) -> Found<'s> {
    let Some(plugin) = &part.run else {
        return if part.is_meant_for(search, view) { Found::Unavailable } else { Found::Nothing };
    };
    if !plugin.applies(cx) {
        return Found::Nothing;
    }
    match part.select_by(search, view) {
        Selected::NoSelector => Found::NoSelector,
        Selected::NoRule(selector) => Found::NoRule(selector),
        Selected::Blocked => Found::Unavailable,
        Selected::Rule(selector, rule) => {
            let hit = HitRef { config: &part.config, selector: &selector.head, rule };
            Found::Hit(selector, hit)
        }
    }
}

/// A guard that cannot run was meant for this request.
pub(crate) fn unavailable(part: &PluginPart) -> GatewayError {
    let why = if part.run.is_some() {
        "has a selector or rule that cannot be used"
    } else {
        "is not part of this gateway"
    };
    GatewayError::new(
        Fault::Gateway,
        Reason::PluginUnavailable,
        StatusCode::SERVICE_UNAVAILABLE,
        format!("plugin_unavailable: the plugin {} {why}", part.name),
    )
}
