//! Upstreams of a discovery handler.
//!
//! Every function that writes holds the handler's row, so that the list a writer reads afterwards
//! is the one that its change set describes.

use std::collections::HashMap;

use longmen_core::model::Upstream;

use super::TextRow;
use crate::statement::{
    execute, execute_in, fetch_all, fetch_all_in, fetch_optional, here, on_conn, values,
};
use crate::tx::{Tx, UnitOfWork};
use crate::{Error, Result, dialect};

/// Rows of one `INSERT`.
const ROWS: usize = 200;

/// Who an upstream is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// A person. Nothing but a person takes it away.
    #[default]
    Configured,
    /// The instance, which registered itself; no person changed it since.
    Registered,
    /// A person; it is down because its instance is away, and comes back with it.
    Away,
}

impl Origin {
    const fn code(self) -> i32 {
        match self {
            Self::Configured => 0,
            Self::Registered => 1,
            Self::Away => 2,
        }
    }
}

impl From<i32> for Origin {
    fn from(code: i32) -> Self {
        match code {
            1 => Self::Registered,
            2 => Self::Away,
            _ => Self::Configured,
        }
    }
}

/// A stored upstream.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UpstreamRow {
    /// Id of the row; new at every replacement of the list.
    pub id: String,
    /// The handler it belongs to.
    pub discovery_handler_id: String,
    /// Its namespace.
    pub namespace_id: String,
    /// Scheme with separator.
    pub protocol: Option<String>,
    /// `host:port`.
    pub upstream_url: String,
    /// 0 = usable, 1 = down.
    pub upstream_status: i32,
    /// Share of the traffic.
    pub weight: i32,
    /// Settings, JSON text.
    pub props: Option<String>,
    /// Who it is from.
    #[sqlx(try_from = "i32")]
    pub origin: Origin,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

impl UpstreamRow {
    /// Whether an edit to `new` would leave it as it is.
    fn is_same(&self, new: &NewUpstream) -> bool {
        self.namespace_id == new.namespace_id
            && self.protocol == new.protocol
            && self.upstream_url == new.url
            && self.upstream_status == new.status
            && self.weight == new.weight
            && self.props.as_deref() == Some(new.props.as_deref().unwrap_or("{}"))
    }

    /// Who it is from once a person saved `new` over it: still its instance, if nothing differs.
    fn origin_after(&self, new: &NewUpstream) -> Origin {
        if self.is_same(new) { self.origin } else { new.origin }
    }

    /// The upstream as stock admins put it on the wire: without namespace.
    #[must_use]
    pub fn to_model(&self, tx: &Tx) -> Upstream {
        Upstream {
            id: Some(self.id.clone()),
            date_created: Some(tx.date_text(self.created_ms)),
            date_updated: Some(tx.date_text(self.updated_ms)),
            discovery_handler_id: Some(self.discovery_handler_id.clone()),
            protocol: self.protocol.clone(),
            url: self.upstream_url.clone(),
            status: self.upstream_status,
            weight: self.weight,
            props: self.props.clone(),
            namespace_id: None,
        }
    }
}

/// An upstream to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewUpstream {
    /// Its namespace.
    pub namespace_id: String,
    /// Scheme with separator.
    pub protocol: Option<String>,
    /// `host:port`.
    pub url: String,
    /// 0 = usable, 1 = down.
    pub status: i32,
    /// Share of the traffic.
    pub weight: i32,
    /// Settings, JSON text.
    pub props: Option<String>,
    /// Who it is from.
    pub origin: Origin,
    /// When it started, in milliseconds since 1970-01-01 UTC; now if absent.
    pub created_ms: Option<i64>,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, discovery_handler_id, namespace_id, protocol, upstream_url,
                    upstream_status, weight, props, origin, created_ms, updated_ms
             FROM discovery_upstream ",
            $rest
        )
    };
}

/// The upstreams of a handler, by id, which is the order in which they were added.
///
/// # Errors
/// The database's.
pub async fn of_handler(tx: &mut Tx, handler_id: &str) -> Result<Vec<UpstreamRow>> {
    fetch_all!(tx, UpstreamRow, select!("WHERE discovery_handler_id = $1 ORDER BY id"), handler_id,)
}

/// The upstreams of several handlers, by handler and id.
///
/// # Errors
/// The database's.
pub async fn of_handlers<S: AsRef<str>>(
    tx: &mut Tx,
    handler_ids: &[S],
) -> Result<Vec<UpstreamRow>> {
    Ok(fetch_all_in!(
        tx,
        UpstreamRow,
        select!("WHERE discovery_handler_id IN ({ids}) ORDER BY discovery_handler_id, id"),
        handler_ids,
    ))
}

/// One upstream.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<UpstreamRow>> {
    fetch_optional!(tx, UpstreamRow, select!("WHERE id = $1"), id)
}

/// The upstream of a handler at an address.
///
/// # Errors
/// The database's.
pub async fn find_by_url(tx: &mut Tx, handler_id: &str, url: &str) -> Result<Option<UpstreamRow>> {
    fetch_optional!(
        tx,
        UpstreamRow,
        select!("WHERE discovery_handler_id = $1 AND upstream_url = $2"),
        handler_id,
        url,
    )
}

/// The upstream at an address of the selector that a registration of this name is for: the first by
/// id, among several of the name, as everywhere.
///
/// # Errors
/// The database's.
pub async fn find_of_selector(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_name: &str,
    selector_name: &str,
    url: &str,
) -> Result<Option<UpstreamRow>> {
    fetch_optional!(
        tx,
        UpstreamRow,
        "SELECT u.id, u.discovery_handler_id, u.namespace_id, u.protocol, u.upstream_url,
                u.upstream_status, u.weight, u.props, u.origin, u.created_ms, u.updated_ms
         FROM discovery_upstream u
         JOIN discovery_rel r ON r.discovery_handler_id = u.discovery_handler_id
         JOIN selector s ON s.id = r.selector_id
         JOIN plugin p ON p.id = s.plugin_id
         WHERE u.upstream_url = $1 AND s.namespace_id = $2 AND p.name = $3 AND s.selector_name = $4
         ORDER BY s.id LIMIT 1",
        url,
        namespace_id,
        plugin_name,
        selector_name,
    )
}

/// Upstreams that follow their instance, by id: those that registered themselves, and those that are
/// down because theirs is away. At most `most` after the id `after`.
///
/// # Errors
/// The database's.
pub async fn following(tx: &mut Tx, after: &str, most: i64) -> Result<Vec<UpstreamRow>> {
    fetch_all!(
        tx,
        UpstreamRow,
        select!("WHERE origin IN (1, 2) AND id > $1 ORDER BY id LIMIT $2"),
        after,
        most,
    )
}

/// Those of the upstreams that exist, by id.
///
/// # Errors
/// The database's.
pub async fn find_many<S: AsRef<str>>(tx: &mut Tx, ids: &[S]) -> Result<Vec<UpstreamRow>> {
    Ok(fetch_all_in!(tx, UpstreamRow, select!("WHERE id IN ({ids}) ORDER BY id"), ids))
}

/// Adds upstreams to a handler.
///
/// # Errors
/// The database's; [`Error::Reference`] for an unknown handler, [`Error::Unique`] for an address
/// that the handler has already.
pub async fn insert(uow: &mut UnitOfWork, handler_id: &str, new: &[NewUpstream]) -> Result<()> {
    const HEAD: &str = "INSERT INTO discovery_upstream (id, discovery_handler_id, namespace_id,
        protocol, upstream_url, upstream_status, weight, props, origin, created_ms, updated_ms)
        VALUES";

    lock_handlers(uow, &[handler_id]).await?;
    let now_ms = uow.now_ms();
    for chunk in new.chunks(ROWS) {
        let ids = chunk.iter().map(|_| uow.next_id()).collect::<Result<Vec<_>>>()?;
        on_conn!(uow, |conn| {
            let mut query = sqlx::query(values(HEAD, chunk.len(), 11));
            for (upstream, id) in chunk.iter().zip(&ids) {
                query = query
                    .bind(id.as_str())
                    .bind(handler_id)
                    .bind(upstream.namespace_id.as_str())
                    .bind(upstream.protocol.as_deref())
                    .bind(upstream.url.as_str())
                    .bind(upstream.status)
                    .bind(upstream.weight)
                    .bind(upstream.props.as_deref().unwrap_or("{}"))
                    .bind(upstream.origin.code())
                    .bind(upstream.created_ms.unwrap_or(now_ms))
                    .bind(upstream.created_ms.unwrap_or(now_ms));
            }
            query.execute(conn).await.map(|_| ())
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// Replaces one upstream; it stays with its handler. It is from then on from whom `new` says, unless
/// nothing differs. Out: 0 when there is none.
///
/// # Errors
/// As [`insert`].
pub async fn update(uow: &mut UnitOfWork, id: &str, new: &NewUpstream) -> Result<u64> {
    lock_handlers_of(uow, &[id]).await?;
    let Some(before) = find(uow, id).await? else { return Ok(0) };
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE discovery_upstream SET namespace_id = $1, protocol = $2, upstream_url = $3,
             upstream_status = $4, weight = $5, props = $6, origin = $7, updated_ms = $8
         WHERE id = $9",
        new.namespace_id.as_str(),
        new.protocol.as_deref(),
        new.url.as_str(),
        new.status,
        new.weight,
        new.props.as_deref().unwrap_or("{}"),
        before.origin_after(new).code(),
        now_ms,
        id,
    )
}

/// Sets the state of one upstream, as its instance or a probe of it says. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn set_state(uow: &mut UnitOfWork, id: &str, status: i32, origin: Origin) -> Result<u64> {
    lock_handlers_of(uow, &[id]).await?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE discovery_upstream SET upstream_status = $1, origin = $2, updated_ms = $3
         WHERE id = $4",
        status,
        origin.code(),
        now_ms,
        id,
    )
}

/// Sets the scheme of one upstream, as its instance says. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn set_protocol(uow: &mut UnitOfWork, id: &str, protocol: Option<&str>) -> Result<u64> {
    lock_handlers_of(uow, &[id]).await?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE discovery_upstream SET protocol = $1, updated_ms = $2 WHERE id = $3",
        protocol,
        now_ms,
        id,
    )
}

/// Replaces all upstreams of a handler; all get new ids. Those that are as before stay from whom
/// they were.
///
/// # Errors
/// As [`insert`].
pub async fn replace(uow: &mut UnitOfWork, handler_id: &str, new: &[NewUpstream]) -> Result<()> {
    lock_handlers(uow, &[handler_id]).await?;
    let before = of_handler(uow, handler_id).await?;
    let before: HashMap<&str, &UpstreamRow> =
        before.iter().map(|row| (row.upstream_url.as_str(), row)).collect();
    let kept = |new: &NewUpstream| {
        let origin = before.get(new.url.as_str()).map_or(new.origin, |row| row.origin_after(new));
        NewUpstream { origin, ..new.clone() }
    };
    let new: Vec<NewUpstream> = new.iter().map(kept).collect();
    execute!(uow, "DELETE FROM discovery_upstream WHERE discovery_handler_id = $1", handler_id)?;
    insert(uow, handler_id, &new).await
}

/// Deletes upstreams. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<u64> {
    lock_handlers_of(uow, ids).await?;
    Ok(execute_in!(uow, "DELETE FROM discovery_upstream WHERE id IN ({ids})", ids))
}

/// Holds discovery handlers until the end of the transaction.
pub(super) async fn lock_handlers<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<()> {
    dialect::hold_rows(uow, "discovery_handler", ids).await
}

async fn lock_handlers_of<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<()> {
    // An upstream never changes its handler.
    let handlers = fetch_all_in!(
        uow,
        TextRow,
        "SELECT discovery_handler_id AS text FROM discovery_upstream WHERE id IN ({ids})",
        ids,
    );
    let handlers: Vec<String> = handlers.into_iter().map(|row| row.text).collect();
    lock_handlers(uow, &handlers).await
}
