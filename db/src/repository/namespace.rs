//! Namespaces and who works in them.

use super::CountRow;
use crate::page::{Like, Page, PageRequest};
use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored namespace.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct NamespaceRow {
    /// Id of the row.
    pub id: String,
    /// The id that everything else uses.
    pub namespace_id: String,
    /// Its name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// How much a namespace holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Contents {
    /// Rules.
    pub rules: i64,
    /// Selectors.
    pub selectors: i64,
    /// Plugins that are linked.
    pub plugins: i64,
    /// Registered APIs.
    pub meta_data: i64,
    /// Discoveries.
    pub discoveries: i64,
    /// Raw ports.
    pub proxy_selectors: i64,
}

/// Which namespaces a list holds; what is `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceFilter {
    /// Exactly this one.
    pub namespace_id: Option<String>,
    /// Text in the name.
    pub name: Option<Like>,
    /// The user who must work in them.
    pub member: Option<String>,
}

macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT n.id, n.namespace_id, n.name, n.description, n.created_ms, n.updated_ms
             FROM namespace n ",
            $($rest),*
        )
    };
}

/// The condition of [`NamespaceFilter`]; its values are bound in the order of the members.
macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR n.namespace_id = $1)
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(n.name) LIKE $2 ESCAPE '\\')
            AND (CAST($3 AS TEXT) IS NULL OR EXISTS (
                SELECT 1 FROM namespace_user_rel u
                WHERE u.user_id = $3 AND u.namespace_id = n.namespace_id))"
    };
}

/// One page of namespaces, by id of the row.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    filter: &NamespaceFilter,
    request: PageRequest,
) -> Result<Page<NamespaceRow>> {
    let total = fetch_one!(
        tx,
        CountRow,
        concat!("SELECT COUNT(*) AS n FROM namespace n", filter!()),
        filter.namespace_id.as_deref(),
        filter.name.as_ref().map(Like::as_str),
        filter.member.as_deref(),
    )?
    .n;
    let rows = fetch_all!(
        tx,
        NamespaceRow,
        select!(filter!(), " ORDER BY n.id LIMIT $4 OFFSET $5"),
        filter.namespace_id.as_deref(),
        filter.name.as_ref().map(Like::as_str),
        filter.member.as_deref(),
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// All namespaces that the filter lets through, by id of the row.
///
/// # Errors
/// The database's.
pub async fn list(tx: &mut Tx, filter: &NamespaceFilter) -> Result<Vec<NamespaceRow>> {
    fetch_all!(
        tx,
        NamespaceRow,
        select!(filter!(), " ORDER BY n.id"),
        filter.namespace_id.as_deref(),
        filter.name.as_ref().map(Like::as_str),
        filter.member.as_deref(),
    )
}

/// The namespace with this namespace id.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, namespace_id: &str) -> Result<Option<NamespaceRow>> {
    fetch_optional!(tx, NamespaceRow, select!("WHERE n.namespace_id = $1"), namespace_id)
}

/// Those of the namespaces that exist, by the ids of their rows.
///
/// # Errors
/// The database's.
pub async fn find_many_by_row_id<S: AsRef<str>>(
    tx: &mut Tx,
    ids: &[S],
) -> Result<Vec<NamespaceRow>> {
    Ok(fetch_all_in!(tx, NamespaceRow, select!("WHERE n.id IN ({ids}) ORDER BY n.id"), ids))
}

/// As [`find_many_by_row_id`], and holds the namespaces until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_by_row_id_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<NamespaceRow>> {
    dialect::hold_rows(uow, "namespace", ids).await?;
    find_many_by_row_id(uow, ids).await
}

/// As [`find`], and holds the namespace until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_for_update(
    uow: &mut UnitOfWork,
    namespace_id: &str,
) -> Result<Option<NamespaceRow>> {
    let Some(seen) = find(uow, namespace_id).await? else { return Ok(None) };
    let held = find_many_by_row_id_for_update(uow, &[&seen.id]).await?;
    Ok(held.into_iter().next())
}

/// How much a namespace holds.
///
/// # Errors
/// The database's.
pub async fn contents(tx: &mut Tx, namespace_id: &str) -> Result<Contents> {
    fetch_one!(
        tx,
        Contents,
        "SELECT (SELECT COUNT(*) FROM rule WHERE namespace_id = $1) AS rules,
                (SELECT COUNT(*) FROM selector WHERE namespace_id = $1) AS selectors,
                (SELECT COUNT(*) FROM namespace_plugin_rel WHERE namespace_id = $1) AS plugins,
                (SELECT COUNT(*) FROM meta_data WHERE namespace_id = $1) AS meta_data,
                (SELECT COUNT(*) FROM discovery WHERE namespace_id = $1) AS discoveries,
                (SELECT COUNT(*) FROM proxy_selector WHERE namespace_id = $1) AS proxy_selectors",
        namespace_id,
    )
}

/// Stores a new namespace. Out: the row.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) for a namespace id that is taken.
pub async fn insert(
    uow: &mut UnitOfWork,
    namespace_id: &str,
    name: &str,
    description: &str,
) -> Result<NamespaceRow> {
    let now_ms = uow.now_ms();
    let row = NamespaceRow {
        id: uow.next_id()?,
        namespace_id: namespace_id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    execute!(
        uow,
        "INSERT INTO namespace (id, namespace_id, name, description, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $5)",
        row.id.as_str(),
        namespace_id,
        name,
        description,
        now_ms,
    )?;
    Ok(row)
}

/// Renames a namespace. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn update(
    uow: &mut UnitOfWork,
    namespace_id: &str,
    name: &str,
    description: &str,
) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE namespace SET name = $1, description = $2, updated_ms = $3
         WHERE namespace_id = $4",
        name,
        description,
        now_ms,
        namespace_id,
    )
}

/// Deletes namespaces, by the ids of their rows, with the memberships. Out: how many there were.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) while one of them holds anything.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<u64> {
    dialect::hold_rows(uow, "namespace", ids).await?;
    Ok(execute_in!(uow, "DELETE FROM namespace WHERE id IN ({ids})", ids))
}

/// Lets a user work in a namespace; again is no error.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) when either does not exist.
pub async fn add_member(uow: &mut UnitOfWork, namespace_id: &str, user_id: &str) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO namespace_user_rel (id, namespace_id, user_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $4) ON CONFLICT (namespace_id, user_id) DO NOTHING",
        id.as_str(),
        namespace_id,
        user_id,
        now_ms,
    )?;
    Ok(())
}

/// Whether a user works in a namespace.
///
/// # Errors
/// The database's.
pub async fn is_member(tx: &mut Tx, namespace_id: &str, user_id: &str) -> Result<bool> {
    let row = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM namespace_user_rel WHERE namespace_id = $1 AND user_id = $2",
        namespace_id,
        user_id,
    )?;
    Ok(row.n > 0)
}
