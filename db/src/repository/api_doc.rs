//! Descriptions of APIs for people, and their tags.

use super::{CountRow, TextRow};
use crate::Result;
use crate::page::Like;
use crate::statement::{execute, fetch_all, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};

/// A stored description.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiDocRow {
    /// Id of the row.
    pub id: String,
    /// What it says.
    #[sqlx(flatten)]
    pub doc: ApiDoc,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A description. Codes are explained in the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiDoc {
    /// The path that all APIs of its application are below.
    pub context_path: String,
    /// The path.
    pub api_path: String,
    /// Code of the method.
    pub http_method: i32,
    /// Media types that it takes.
    pub consume: String,
    /// Media types that it answers.
    pub produce: String,
    /// Version of the API.
    pub version: String,
    /// Protocol.
    pub rpc_type: String,
    /// Code of the state.
    pub state: i32,
    /// Further facts, JSON text.
    pub ext: String,
    /// Who answers for it.
    pub api_owner: String,
    /// Free text.
    pub api_desc: String,
    /// Code of where it is from.
    pub api_source: i32,
    /// The description proper, JSON text.
    pub document: String,
    /// The digest of `document`.
    pub document_md5: String,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, context_path, api_path, http_method, consume, produce, version, rpc_type,
                    state, ext, api_owner, api_desc, api_source, document, document_md5, created_ms,
                    updated_ms
             FROM api ",
            $rest
        )
    };
}

/// All descriptions, by path, method and id: those whose path contains a text, in a state, with a
/// tag; what is `None` does not narrow.
///
/// # Errors
/// The database's.
pub async fn list(
    tx: &mut Tx,
    path: Option<&Like>,
    state: Option<i32>,
    tag_id: Option<&str>,
) -> Result<Vec<ApiDocRow>> {
    fetch_all!(
        tx,
        ApiDocRow,
        select!(
            "WHERE (CAST($1 AS TEXT) IS NULL OR LOWER(api_path) LIKE $1 ESCAPE '\\')
                 AND (CAST($2 AS INTEGER) IS NULL OR state = $2)
                 AND (CAST($3 AS TEXT) IS NULL OR EXISTS (
                     SELECT 1 FROM tag_relation r WHERE r.api_id = api.id AND r.tag_id = $3))
             ORDER BY api_path, http_method, id"
        ),
        path.map(Like::as_str),
        state,
        tag_id,
    )
}

/// One description.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<ApiDocRow>> {
    fetch_optional!(tx, ApiDocRow, select!("WHERE id = $1"), id)
}

/// The names of the tags of a description, ascending.
///
/// # Errors
/// The database's.
pub async fn tags(tx: &mut Tx, api_id: &str) -> Result<Vec<String>> {
    let rows = fetch_all!(
        tx,
        TextRow,
        "SELECT t.tag_name AS text FROM tag t JOIN tag_relation r ON r.tag_id = t.id
         WHERE r.api_id = $1 ORDER BY t.tag_name",
        api_id,
    )?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

/// Stores what a service says of one of its operations. A description by a person stays as it is, and
/// so does the state, unless the service was offline.
///
/// # Errors
/// The database's.
pub async fn register(uow: &mut UnitOfWork, doc: &ApiDoc, tags: &[String]) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO api (id, context_path, api_path, http_method, consume, produce, version,
             rpc_type, state, ext, api_owner, api_desc, api_source, document, document_md5,
             created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
         ON CONFLICT (api_path, http_method, rpc_type) DO UPDATE SET
             context_path = excluded.context_path, consume = excluded.consume,
             produce = excluded.produce, version = excluded.version, ext = excluded.ext,
             state = CASE WHEN api.state = 2 THEN excluded.state ELSE api.state END,
             api_owner = excluded.api_owner, api_desc = excluded.api_desc,
             api_source = excluded.api_source, document = excluded.document,
             document_md5 = excluded.document_md5, updated_ms = excluded.updated_ms
         WHERE api.api_source <> 2",
        id.as_str(),
        doc.context_path.as_str(),
        doc.api_path.as_str(),
        doc.http_method,
        doc.consume.as_str(),
        doc.produce.as_str(),
        doc.version.as_str(),
        doc.rpc_type.as_str(),
        doc.state,
        doc.ext.as_str(),
        doc.api_owner.as_str(),
        doc.api_desc.as_str(),
        doc.api_source,
        doc.document.as_str(),
        doc.document_md5.as_str(),
        now_ms,
    )?;
    let row = fetch_one!(
        uow,
        TextRow,
        "SELECT id AS text FROM api WHERE api_path = $1 AND http_method = $2 AND rpc_type = $3",
        doc.api_path.as_str(),
        doc.http_method,
        doc.rpc_type.as_str(),
    )?;
    for tag in tags {
        let tag_id = ensure_tag(uow, tag).await?;
        relate(uow, &row.text, &tag_id).await?;
    }
    Ok(())
}

/// The tag of a name; a new root if there is none.
async fn ensure_tag(uow: &mut UnitOfWork, name: &str) -> Result<String> {
    let find = "SELECT id AS text FROM tag WHERE tag_name = $1 ORDER BY id LIMIT 1";
    if let Some(row) = fetch_optional!(uow, TextRow, find, name)? {
        return Ok(row.text);
    }
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO tag (id, tag_name, tag_desc, parent_tag_id, ext, created_ms, updated_ms)
         VALUES ($1, $2, $2, '0', '', $3, $3)
         ON CONFLICT (parent_tag_id, tag_name) DO NOTHING",
        id.as_str(),
        name,
        now_ms,
    )?;
    Ok(fetch_one!(uow, TextRow, find, name)?.text)
}

async fn relate(uow: &mut UnitOfWork, api_id: &str, tag_id: &str) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO tag_relation (id, api_id, tag_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $4) ON CONFLICT (api_id, tag_id) DO NOTHING",
        id.as_str(),
        api_id,
        tag_id,
        now_ms,
    )?;
    Ok(())
}

/// Marks the descriptions that services gave of a context path as offline, unless an instance of it
/// is still up. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn go_offline(uow: &mut UnitOfWork, context_path: &str) -> Result<u64> {
    let up = fetch_one!(
        uow,
        CountRow,
        "SELECT COUNT(*) AS n FROM discovery_upstream u
         JOIN discovery_rel r ON r.discovery_handler_id = u.discovery_handler_id
         JOIN selector s ON s.id = r.selector_id
         WHERE s.selector_name = $1 AND u.upstream_status = 0",
        context_path,
    )?;
    if up.n > 0 {
        return Ok(0);
    }
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE api SET state = 2, updated_ms = $1
         WHERE context_path = $2 AND state <> 2 AND api_source <> 2",
        now_ms,
        context_path,
    )
}
