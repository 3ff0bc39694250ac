//! Proxy selectors: raw ports of the plugin tcp.

use super::{CountRow, binding};
use crate::page::{Like, Page, PageRequest};
use crate::state::Binding;
use crate::statement::{execute, execute_in, fetch_all, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored proxy selector.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ProxySelectorRow {
    /// Id of the row.
    pub id: String,
    /// Its name, which keys it in a gateway.
    pub name: String,
    /// `tcp`.
    pub plugin_name: String,
    /// Its type.
    #[sqlx(rename = "type")]
    pub proxy_type: Option<String>,
    /// The port to listen on.
    pub forward_port: Option<i32>,
    /// Settings, JSON text of an object.
    pub props: Option<String>,
    /// Its namespace.
    pub namespace_id: String,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A proxy selector to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewProxySelector {
    /// Its name.
    pub name: String,
    /// Name of the plugin.
    pub plugin_name: String,
    /// Its type.
    pub proxy_type: Option<String>,
    /// The port to listen on.
    pub forward_port: Option<i32>,
    /// Settings, JSON text of an object.
    pub props: Option<String>,
    /// Its namespace.
    pub namespace_id: String,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, name, plugin_name, type, forward_port, props, namespace_id, created_ms,
                    updated_ms
             FROM proxy_selector ",
            $rest
        )
    };
}

/// One page of a namespace, the last written first.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    namespace_id: &str,
    name: Option<&Like>,
    request: PageRequest,
) -> Result<Page<ProxySelectorRow>> {
    let name = name.map(Like::as_str);
    let total = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM proxy_selector WHERE namespace_id = $1
             AND (CAST($2 AS TEXT) IS NULL OR LOWER(name) LIKE $2 ESCAPE '\\')",
        namespace_id,
        name,
    )?
    .n;
    let rows = fetch_all!(
        tx,
        ProxySelectorRow,
        select!(
            "WHERE namespace_id = $1
                 AND (CAST($2 AS TEXT) IS NULL OR LOWER(name) LIKE $2 ESCAPE '\\')
             ORDER BY updated_ms DESC, id DESC LIMIT $3 OFFSET $4"
        ),
        namespace_id,
        name,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// One proxy selector.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<ProxySelectorRow>> {
    fetch_optional!(tx, ProxySelectorRow, select!("WHERE id = $1"), id)
}

/// As [`find`], and holds the proxy selector until the end of the transaction. Whoever also holds
/// its handler holds this first.
///
/// # Errors
/// The database's.
pub async fn find_for_update(uow: &mut UnitOfWork, id: &str) -> Result<Option<ProxySelectorRow>> {
    dialect::hold_rows(uow, "proxy_selector", &[id]).await?;
    find(uow, id).await
}

/// Stores a new proxy selector. Out: its id.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown namespace.
pub async fn insert(uow: &mut UnitOfWork, new: &NewProxySelector) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO proxy_selector (id, name, plugin_name, type, forward_port, props,
             namespace_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
        id.as_str(),
        new.name.as_str(),
        new.plugin_name.as_str(),
        new.proxy_type.as_deref(),
        new.forward_port,
        new.props.as_deref(),
        new.namespace_id.as_str(),
        now_ms,
    )?;
    Ok(id)
}

/// Replaces a proxy selector; its namespace stays. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn update(uow: &mut UnitOfWork, id: &str, new: &NewProxySelector) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE proxy_selector SET name = $1, plugin_name = $2, type = $3, forward_port = $4,
             props = $5, updated_ms = $6
         WHERE id = $7",
        new.name.as_str(),
        new.plugin_name.as_str(),
        new.proxy_type.as_deref(),
        new.forward_port,
        new.props.as_deref(),
        now_ms,
        id,
    )
}

/// Deletes proxy selectors with their bindings and upstreams. Out: what gateways had of them.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<Vec<Binding>> {
    let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
    dialect::hold_rows(uow, "proxy_selector", &ids).await?;
    let bindings = binding::delete_of_proxy_selectors(uow, &ids).await?;
    execute_in!(uow, "DELETE FROM proxy_selector WHERE id IN ({ids})", ids);
    Ok(bindings)
}
