//! Metadata: registered descriptions of APIs.

use longmen_core::model::MetaData;

use super::{CountRow, TextRow};
use crate::page::{Like, Page, PageRequest};
use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaDataRow {
    /// The description; its context path is never stored.
    pub meta_data: MetaData,
    /// Free text.
    pub path_desc: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    app_name: String,
    path: String,
    path_desc: Option<String>,
    rpc_type: String,
    service_name: Option<String>,
    method_name: Option<String>,
    parameter_types: Option<String>,
    rpc_ext: Option<String>,
    namespace_id: String,
    enabled: bool,
    created_ms: i64,
    updated_ms: i64,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, app_name, path, path_desc, rpc_type, service_name, method_name,
                    parameter_types, rpc_ext, namespace_id, enabled, created_ms, updated_ms
             FROM meta_data ",
            $rest
        )
    };
}

impl From<Row> for MetaDataRow {
    fn from(row: Row) -> Self {
        Self {
            meta_data: MetaData {
                id: row.id,
                app_name: Some(row.app_name),
                context_path: None,
                path: row.path,
                rpc_type: row.rpc_type,
                service_name: row.service_name,
                method_name: row.method_name,
                parameter_types: row.parameter_types,
                rpc_ext: row.rpc_ext,
                enabled: row.enabled,
                namespace_id: Some(row.namespace_id),
            },
            path_desc: row.path_desc,
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        }
    }
}

/// One page of a namespace, by path, then id.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    namespace_id: &str,
    path: Option<&Like>,
    request: PageRequest,
) -> Result<Page<MetaDataRow>> {
    let path = path.map(Like::as_str);
    let total = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM meta_data WHERE namespace_id = $1
             AND (CAST($2 AS TEXT) IS NULL OR LOWER(path) LIKE $2 ESCAPE '\\')",
        namespace_id,
        path,
    )?
    .n;
    let rows = fetch_all!(
        tx,
        Row,
        select!(
            "WHERE namespace_id = $1
                 AND (CAST($2 AS TEXT) IS NULL OR LOWER(path) LIKE $2 ESCAPE '\\')
             ORDER BY path, id LIMIT $3 OFFSET $4"
        ),
        namespace_id,
        path,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows: rows.into_iter().map(MetaDataRow::from).collect(), total })
}

/// Everything in all namespaces, by id.
///
/// # Errors
/// The database's.
pub async fn all(tx: &mut Tx) -> Result<Vec<MetaDataRow>> {
    let rows = fetch_all!(tx, Row, select!("ORDER BY id"))?;
    Ok(rows.into_iter().map(MetaDataRow::from).collect())
}

/// One description.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<MetaDataRow>> {
    Ok(fetch_optional!(tx, Row, select!("WHERE id = $1"), id)?.map(MetaDataRow::from))
}

/// The description of a path in a namespace.
///
/// # Errors
/// The database's.
pub async fn find_by_path(
    tx: &mut Tx,
    namespace_id: &str,
    path: &str,
) -> Result<Option<MetaDataRow>> {
    let row = fetch_optional!(
        tx,
        Row,
        select!("WHERE namespace_id = $1 AND path = $2"),
        namespace_id,
        path,
    )?;
    Ok(row.map(MetaDataRow::from))
}

/// The first description of a method of a service in a namespace, by id.
///
/// # Errors
/// The database's.
pub async fn find_by_method(
    tx: &mut Tx,
    namespace_id: &str,
    service_name: &str,
    method_name: &str,
) -> Result<Option<MetaDataRow>> {
    let row = fetch_optional!(
        tx,
        Row,
        select!(
            "WHERE namespace_id = $1 AND service_name = $2 AND method_name = $3
             ORDER BY id LIMIT 1"
        ),
        namespace_id,
        service_name,
        method_name,
    )?;
    Ok(row.map(MetaDataRow::from))
}

/// Those of the descriptions that exist in the namespace, by id, held until the end of the
/// transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    namespace_id: &str,
    ids: &[S],
) -> Result<Vec<MetaDataRow>> {
    dialect::hold_rows(uow, "meta_data", ids).await?;
    let rows = fetch_all_in!(
        uow,
        Row,
        select!("WHERE namespace_id = $1 AND id IN ({ids}) ORDER BY id"),
        ids,
        namespace_id,
    );
    Ok(rows.into_iter().map(MetaDataRow::from).collect())
}

/// A description, those of its service and those of the service that it is to have, by id, all held
/// until the end of the transaction: whatever an edit of it can touch. Read when they are held, so
/// they are as they will be until the edit. Without the description if there is none of that id in
/// that namespace.
///
/// # Errors
/// The database's.
pub async fn find_services_for_update(
    uow: &mut UnitOfWork,
    namespace_id: &str,
    id: &str,
    new_service: &str,
) -> Result<Vec<MetaDataRow>> {
    let mut held: Vec<String> = Vec::new();
    loop {
        let ids = fetch_all!(
            uow,
            TextRow,
            "SELECT id AS text FROM meta_data WHERE namespace_id = $1 AND (
                 id = $2 OR service_name = $3 OR service_name = (
                     SELECT service_name FROM meta_data WHERE namespace_id = $1 AND id = $2))
             ORDER BY id",
            namespace_id,
            id,
            new_service,
        )?;
        let ids: Vec<String> = ids.into_iter().map(|row| row.text).collect();
        let rows = find_many_for_update(uow, namespace_id, &ids).await?;
        // One may have come in before the others were held. None can once all of them are, but by
        // being new.
        if ids.iter().all(|id| held.contains(id)) {
            return Ok(rows);
        }
        held = ids;
    }
}

/// Stores a new description under its id.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) for a path that the namespace has,
/// [`Error::Reference`](crate::Error::Reference) for an unknown namespace.
pub async fn insert(
    uow: &mut UnitOfWork,
    meta_data: &MetaData,
    path_desc: Option<&str>,
) -> Result<()> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO meta_data (id, app_name, path, path_desc, rpc_type, service_name, method_name,
             parameter_types, rpc_ext, namespace_id, enabled, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
        meta_data.id.as_str(),
        meta_data.app_name.as_deref().unwrap_or_default(),
        meta_data.path.as_str(),
        path_desc,
        meta_data.rpc_type.as_str(),
        meta_data.service_name.as_deref(),
        meta_data.method_name.as_deref(),
        meta_data.parameter_types.as_deref(),
        meta_data.rpc_ext.as_deref(),
        meta_data.namespace_id.as_deref().unwrap_or_default(),
        meta_data.enabled,
        now_ms,
    )?;
    Ok(())
}

/// Replaces a description, but not whether it is enabled. Out: 0 when there is none of that id in
/// that namespace.
///
/// # Errors
/// As [`insert`].
pub async fn update(
    uow: &mut UnitOfWork,
    meta_data: &MetaData,
    path_desc: Option<&str>,
) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE meta_data SET app_name = $1, path = $2, path_desc = $3, rpc_type = $4,
             service_name = $5, method_name = $6, parameter_types = $7, rpc_ext = $8,
             updated_ms = $9
         WHERE id = $10 AND namespace_id = $11",
        meta_data.app_name.as_deref().unwrap_or_default(),
        meta_data.path.as_str(),
        path_desc,
        meta_data.rpc_type.as_str(),
        meta_data.service_name.as_deref(),
        meta_data.method_name.as_deref(),
        meta_data.parameter_types.as_deref(),
        meta_data.rpc_ext.as_deref(),
        now_ms,
        meta_data.id.as_str(),
        meta_data.namespace_id.as_deref().unwrap_or_default(),
    )
}

/// Sets the protocol settings of descriptions. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_rpc_ext<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
    rpc_ext: Option<&str>,
) -> Result<u64> {
    dialect::hold_rows(uow, "meta_data", ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(
        uow,
        "UPDATE meta_data SET rpc_ext = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        rpc_ext,
        now_ms,
    ))
}

/// Switches descriptions on or off. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_enabled<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
    enabled: bool,
) -> Result<u64> {
    dialect::hold_rows(uow, "meta_data", ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(
        uow,
        "UPDATE meta_data SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        enabled,
        now_ms,
    ))
}

/// Deletes descriptions of a namespace. Out: those that existed, as they were.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    namespace_id: &str,
    ids: &[S],
) -> Result<Vec<MetaData>> {
    let rows = find_many_for_update(uow, namespace_id, ids).await?;
    execute_in!(
        uow,
        "DELETE FROM meta_data WHERE namespace_id = $1 AND id IN ({ids})",
        ids,
        namespace_id,
    );
    Ok(rows.into_iter().map(|row| row.meta_data).collect())
}

/// What gateways get of a namespace, by id.
///
/// # Errors
/// The database's.
pub async fn models_of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<MetaData>> {
    let rows = fetch_all!(tx, Row, select!("WHERE namespace_id = $1 ORDER BY id"), namespace_id)?;
    Ok(rows.into_iter().map(|row| MetaDataRow::from(row).meta_data).collect())
}
