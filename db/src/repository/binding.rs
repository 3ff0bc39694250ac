//! Bindings: which discovery handler, and so which upstreams, a selector or a raw port has.

use std::collections::HashMap;

use longmen_core::model::{ProxySelector, Upstream, UpstreamList};

use super::CountRow;
use super::discovery::{self, DiscoveryRow, NewDiscovery};
use super::upstream::{self, NewUpstream, UpstreamRow};
use crate::state::Binding;
use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Error, Result, dialect};

/// A stored discovery handler.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct HandlerRow {
    /// Id of the row.
    pub id: String,
    /// The discovery behind it.
    pub discovery_id: String,
    /// How members of the source are renamed, JSON text or empty.
    pub handler: String,
    /// What is watched in the source.
    pub listener_node: Option<String>,
    /// Settings, JSON text.
    pub props: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A handler with its discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingRow {
    /// The discovery.
    pub discovery: DiscoveryRow,
    /// The handler.
    pub handler: HandlerRow,
}

/// What is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound<'a> {
    /// An ordinary selector, by id.
    Selector(&'a str),
    /// A raw port, by the id of its proxy selector.
    ProxySelector(&'a str),
}

/// Which discovery a new binding uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UseDiscovery {
    /// One that exists, by id.
    Existing(String),
    /// A new one.
    New(NewDiscovery),
}

/// A binding to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBinding {
    /// The discovery.
    pub discovery: UseDiscovery,
    /// Name of the plugin.
    pub plugin_name: String,
    /// See [`HandlerRow::handler`].
    pub handler: String,
    /// See [`HandlerRow::listener_node`].
    pub listener_node: Option<String>,
    /// See [`HandlerRow::props`].
    pub props: Option<String>,
    /// The upstreams.
    pub upstreams: Vec<NewUpstream>,
}

#[derive(sqlx::FromRow)]
struct Row {
    handler_id: String,
    selector_id: Option<String>,
    selector_name: Option<String>,
    selector_plugin: Option<String>,
    selector_namespace: Option<String>,
    port_id: Option<String>,
    port_name: Option<String>,
    port_plugin: Option<String>,
    port_type: Option<String>,
    port_number: Option<i32>,
    port_props: Option<String>,
    port_namespace: Option<String>,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT rel.discovery_handler_id AS handler_id,
                    s.id AS selector_id, s.selector_name, p.name AS selector_plugin,
                    s.namespace_id AS selector_namespace,
                    x.id AS port_id, x.name AS port_name, x.plugin_name AS port_plugin,
                    x.type AS port_type, x.forward_port AS port_number, x.props AS port_props,
                    x.namespace_id AS port_namespace
             FROM discovery_rel rel
             JOIN discovery_handler h ON h.id = rel.discovery_handler_id
             JOIN discovery d ON d.id = h.discovery_id
             LEFT JOIN selector s ON s.id = rel.selector_id
             LEFT JOIN plugin p ON p.id = s.plugin_id
             LEFT JOIN proxy_selector x ON x.id = rel.proxy_selector_id ",
            $rest
        )
    };
}

macro_rules! select_handler {
    ($rest:expr) => {
        concat!(
            "SELECT h.id, h.discovery_id, h.handler, h.listener_node, h.props, h.created_ms,
                    h.updated_ms
             FROM discovery_handler h ",
            $rest
        )
    };
}

/// The handler with this id and its discovery.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, handler_id: &str) -> Result<Option<BindingRow>> {
    let row = fetch_optional!(tx, HandlerRow, select_handler!("WHERE h.id = $1"), handler_id)?;
    with_discovery(tx, row).await
}

/// The handler of a selector or raw port, and its discovery.
///
/// # Errors
/// The database's.
pub async fn find_of(tx: &mut Tx, bound: Bound<'_>) -> Result<Option<BindingRow>> {
    let row = match bound {
        Bound::Selector(id) => fetch_optional!(
            tx,
            HandlerRow,
            select_handler!(
                "JOIN discovery_rel r ON r.discovery_handler_id = h.id WHERE r.selector_id = $1"
            ),
            id,
        )?,
        Bound::ProxySelector(id) => fetch_optional!(
            tx,
            HandlerRow,
            select_handler!(
                "JOIN discovery_rel r ON r.discovery_handler_id = h.id
                 WHERE r.proxy_selector_id = $1"
            ),
            id,
        )?,
    };
    with_discovery(tx, row).await
}

/// What gateways get of a handler: the announcement, and the upstreams as they now are.
///
/// # Errors
/// The database's.
pub async fn load(tx: &mut Tx, handler_id: &str) -> Result<Option<Binding>> {
    let rows = fetch_all_in!(tx, Row, select!("WHERE h.id IN ({ids})"), [handler_id]);
    Ok(with_upstreams(tx, rows).await?.pop())
}

/// As [`load`], and holds the handler until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn load_for_update(uow: &mut UnitOfWork, handler_id: &str) -> Result<Option<Binding>> {
    upstream::lock_handlers(uow, &[handler_id]).await?;
    load(uow, handler_id).await
}

/// As [`load`], for the handlers of selectors or raw ports; what is not bound is left out.
///
/// # Errors
/// The database's.
pub async fn load_of(tx: &mut Tx, bound: Bound<'_>) -> Result<Option<Binding>> {
    let rows = match bound {
        Bound::Selector(id) => {
            fetch_all_in!(tx, Row, select!("WHERE rel.selector_id IN ({ids})"), [id])
        }
        Bound::ProxySelector(id) => {
            fetch_all_in!(tx, Row, select!("WHERE rel.proxy_selector_id IN ({ids})"), [id])
        }
    };
    Ok(with_upstreams(tx, rows).await?.pop())
}

/// Stores a new binding with its upstreams. Out: the handler and its discovery.
///
/// # Errors
/// The database's; [`Error::Reference`] when what is bound, the discovery or the namespace does not
/// exist; [`Error::Unique`] when it is bound already, or an address comes twice.
pub async fn insert(
    uow: &mut UnitOfWork,
    bound: Bound<'_>,
    new: &NewBinding,
) -> Result<BindingRow> {
    hold_bound(uow, bound).await?;
    let discovery = match &new.discovery {
        UseDiscovery::New(discovery) => discovery::insert(uow, discovery).await?,
        UseDiscovery::Existing(id) => {
            dialect::hold_rows(uow, "discovery", &[id]).await?;
            discovery::find(uow, id)
                .await?
                .ok_or_else(|| missing("discovery_handler.discovery_id", "discovery", id))?
        }
    };
    let now_ms = uow.now_ms();
    let handler = HandlerRow {
        id: uow.next_id()?,
        discovery_id: discovery.id.clone(),
        handler: new.handler.clone(),
        listener_node: new.listener_node.clone(),
        props: new.props.clone(),
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    execute!(
        uow,
        "INSERT INTO discovery_handler
             (id, discovery_id, handler, listener_node, props, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $6)",
        handler.id.as_str(),
        handler.discovery_id.as_str(),
        handler.handler.as_str(),
        handler.listener_node.as_deref(),
        handler.props.as_deref(),
        now_ms,
    )?;
    let (selector_id, port_id) = match bound {
        Bound::Selector(id) => (Some(id), None),
        Bound::ProxySelector(id) => (None, Some(id)),
    };
    let rel_id = uow.next_id()?;
    execute!(
        uow,
        "INSERT INTO discovery_rel (id, plugin_name, discovery_handler_id, selector_id,
             proxy_selector_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $6)",
        rel_id.as_str(),
        new.plugin_name.as_str(),
        handler.id.as_str(),
        selector_id,
        port_id,
        now_ms,
    )?;
    upstream::insert(uow, &handler.id, &new.upstreams).await?;
    Ok(BindingRow { discovery, handler })
}

/// Holds what is to be bound. Else its deletion could pass by unseen: it would find no binding, and
/// leave the handler and its upstreams behind without a word in the change log.
async fn hold_bound(uow: &mut UnitOfWork, bound: Bound<'_>) -> Result<()> {
    let (table, id) = match bound {
        Bound::Selector(id) => ("selector", id),
        Bound::ProxySelector(id) => ("proxy_selector", id),
    };
    dialect::hold_rows(uow, table, &[id]).await?;
    // It may have gone while this waited for it.
    let found = match bound {
        Bound::Selector(_) => {
            fetch_one!(uow, CountRow, "SELECT COUNT(*) AS n FROM selector WHERE id = $1", id)?
        }
        Bound::ProxySelector(_) => {
            fetch_one!(uow, CountRow, "SELECT COUNT(*) AS n FROM proxy_selector WHERE id = $1", id)?
        }
    };
    if found.n > 0 {
        return Ok(());
    }
    Err(match bound {
        Bound::Selector(_) => missing("discovery_rel.selector_id", "selector", id),
        Bound::ProxySelector(_) => missing("discovery_rel.proxy_selector_id", "raw port", id),
    })
}

fn missing(constraint: &str, what: &str, id: &str) -> Error {
    Error::Reference {
        constraint: constraint.to_owned(),
        message: format!("{what} {id} does not exist"),
    }
}

/// Replaces renaming, node and settings of a handler. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn update_handler(
    uow: &mut UnitOfWork,
    handler_id: &str,
    handler: &str,
    listener_node: Option<&str>,
    props: Option<&str>,
) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE discovery_handler SET handler = $1, listener_node = $2, props = $3, updated_ms = $4
         WHERE id = $5",
        handler,
        listener_node,
        props,
        now_ms,
        handler_id,
    )
}

/// Deletes the bindings of selectors. Out: as they were.
pub(super) async fn delete_of_selectors(
    uow: &mut UnitOfWork,
    selector_ids: &[&str],
) -> Result<Vec<Binding>> {
    let rows = fetch_all_in!(
        uow,
        Row,
        select!("WHERE rel.selector_id IN ({ids}) ORDER BY d.id, rel.id"),
        selector_ids,
    );
    delete_rows(uow, rows).await
}

/// Deletes the bindings of raw ports. Out: as they were.
pub(super) async fn delete_of_proxy_selectors(
    uow: &mut UnitOfWork,
    ids: &[&str],
) -> Result<Vec<Binding>> {
    let rows = fetch_all_in!(
        uow,
        Row,
        select!("WHERE rel.proxy_selector_id IN ({ids}) ORDER BY d.id, rel.id"),
        ids,
    );
    delete_rows(uow, rows).await
}

async fn delete_rows(uow: &mut UnitOfWork, rows: Vec<Row>) -> Result<Vec<Binding>> {
    let handler_ids: Vec<String> = rows.iter().map(|row| row.handler_id.clone()).collect();
    upstream::lock_handlers(uow, &handler_ids).await?;
    let handlers = fetch_all_in!(
        uow,
        HandlerRow,
        select_handler!("WHERE h.id IN ({ids}) ORDER BY h.id"),
        handler_ids,
    );
    let bindings = with_upstreams(uow, rows).await?;
    execute_in!(
        uow,
        "DELETE FROM discovery_upstream WHERE discovery_handler_id IN ({ids})",
        handler_ids
    );
    execute_in!(
        uow,
        "DELETE FROM discovery_rel WHERE discovery_handler_id IN ({ids})",
        handler_ids
    );
    execute_in!(uow, "DELETE FROM discovery_handler WHERE id IN ({ids})", handler_ids);
    let discovery_ids: Vec<&str> = handlers.iter().map(|row| row.discovery_id.as_str()).collect();
    // Another handler may just be added to one of them.
    dialect::hold_rows(uow, "discovery", &discovery_ids).await?;
    execute_in!(
        uow,
        "DELETE FROM discovery WHERE discovery_level = '0' AND id IN ({ids}) AND NOT EXISTS (
             SELECT 1 FROM discovery_handler h WHERE h.discovery_id = discovery.id)",
        discovery_ids,
    );
    Ok(bindings)
}

/// All bindings of a namespace, in the order in which stock admins send them: by discovery, raw
/// ports before selectors.
pub(crate) async fn of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<Binding>> {
    let rows = fetch_all!(
        tx,
        Row,
        select!(
            "WHERE d.namespace_id = $1
             ORDER BY d.id, CASE WHEN rel.proxy_selector_id IS NULL THEN 1 ELSE 0 END, rel.id"
        ),
        namespace_id,
    )?;
    let upstreams = fetch_all!(
        tx,
        UpstreamRow,
        "SELECT u.id, u.discovery_handler_id, u.namespace_id, u.protocol, u.upstream_url,
                u.upstream_status, u.weight, u.props, u.origin, u.created_ms, u.updated_ms
         FROM discovery_upstream u
         JOIN discovery_handler h ON h.id = u.discovery_handler_id
         JOIN discovery d ON d.id = h.discovery_id
         WHERE d.namespace_id = $1 ORDER BY u.discovery_handler_id, u.id",
        namespace_id,
    )?;
    Ok(join(tx, rows, &upstreams))
}

async fn with_discovery(tx: &mut Tx, row: Option<HandlerRow>) -> Result<Option<BindingRow>> {
    let Some(handler) = row else { return Ok(None) };
    let discovery = discovery::find(tx, &handler.discovery_id).await?;
    Ok(discovery.map(|discovery| BindingRow { discovery, handler }))
}

async fn with_upstreams(tx: &mut Tx, rows: Vec<Row>) -> Result<Vec<Binding>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.handler_id.as_str()).collect();
    let upstreams = upstream::of_handlers(tx, &ids).await?;
    Ok(join(tx, rows, &upstreams))
}

fn join(tx: &Tx, rows: Vec<Row>, upstreams: &[UpstreamRow]) -> Vec<Binding> {
    let mut lists: HashMap<&str, Vec<Upstream>> = HashMap::with_capacity(rows.len());
    for row in upstreams {
        lists.entry(&row.discovery_handler_id).or_default().push(row.to_model(tx));
    }
    rows.into_iter()
        .map(|row| {
            let list = lists.remove(row.handler_id.as_str()).unwrap_or_default();
            to_binding(row, list)
        })
        .collect()
}

fn to_binding(row: Row, upstreams: Vec<Upstream>) -> Binding {
    let announcement = match row.port_id {
        Some(id) => ProxySelector {
            id,
            name: row.port_name.unwrap_or_default(),
            plugin_name: row.port_plugin.unwrap_or_default(),
            proxy_type: row.port_type,
            forward_port: row.port_number,
            // Text that is no JSON object was refused when it was saved.
            props: row.port_props.and_then(|text| serde_json::from_str(&text).ok()),
            namespace_id: row.port_namespace,
        },
        None => ProxySelector {
            id: row.selector_id.unwrap_or_default(),
            name: row.selector_name.unwrap_or_default(),
            plugin_name: row.selector_plugin.unwrap_or_default(),
            namespace_id: row.selector_namespace,
            ..ProxySelector::default()
        },
    };
    let upstreams = UpstreamList {
        selector_id: announcement.id.clone(),
        plugin_name: announcement.plugin_name.clone(),
        selector_name: Some(announcement.name.clone()),
        upstream_data_list: Some(upstreams),
        namespace_id: announcement.namespace_id.clone(),
        discovery_handler_id: None,
    };
    Binding { announcement, upstreams }
}
