//! Grants of single selectors and rules to users.

use longmen_core::model::Level;

use super::CountRow;
use crate::statement::{execute, execute_in, fetch_all, fetch_one, here, on_conn, values};
use crate::tx::{Tx, UnitOfWork};
use crate::{Error, Result};

use super::TextRow;

/// Rows of one `INSERT`.
const ROWS: usize = 200;

/// The code that is stored of what a grant is on. The statements of `conditioned` have it in their
/// texts.
const fn code(level: Level) -> i32 {
    match level {
        Level::Selector => 0,
        Level::Rule => 1,
    }
}

/// The ids of what a user is granted, ascending.
///
/// # Errors
/// The database's.
pub async fn granted(tx: &mut Tx, user_id: &str, level: Level) -> Result<Vec<String>> {
    let rows = fetch_all!(
        tx,
        TextRow,
        "SELECT data_id AS text FROM data_permission WHERE user_id = $1 AND data_type = $2
         ORDER BY data_id",
        user_id,
        code(level),
    )?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

/// Whether a user is granted an object.
///
/// # Errors
/// The database's.
pub async fn is_granted(tx: &mut Tx, user_id: &str, level: Level, data_id: &str) -> Result<bool> {
    let row = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM data_permission
         WHERE user_id = $1 AND data_type = $2 AND data_id = $3",
        user_id,
        code(level),
        data_id,
    )?;
    Ok(row.n > 0)
}

/// Grants an object to a user; again is no error. Out: whether it is new.
///
/// # Errors
/// The database's; [`Error::Reference`] for an unknown user.
pub async fn grant(
    uow: &mut UnitOfWork,
    user_id: &str,
    level: Level,
    data_id: &str,
) -> Result<bool> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    let added = execute!(
        uow,
        "INSERT INTO data_permission (id, user_id, data_id, data_type, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $5)
         ON CONFLICT (user_id, data_type, data_id) DO NOTHING",
        id.as_str(),
        user_id,
        data_id,
        code(level),
        now_ms,
    )?;
    Ok(added > 0)
}

/// Grants an object that was just created: to its creator alone if they have any grant, else to
/// every user of the namespace.
///
/// Source: ShenYu 2.7.1, row-level grants.
///
/// # Errors
/// The database's.
pub async fn grant_created(
    uow: &mut UnitOfWork,
    creator_id: &str,
    namespace_id: &str,
    level: Level,
    data_id: &str,
) -> Result<()> {
    let own = fetch_one!(
        uow,
        CountRow,
        "SELECT COUNT(*) AS n FROM data_permission WHERE user_id = $1",
        creator_id,
    )?;
    let users = if own.n > 0 {
        vec![creator_id.to_owned()]
    } else {
        let rows = fetch_all!(
            uow,
            TextRow,
            "SELECT user_id AS text FROM namespace_user_rel WHERE namespace_id = $1
             ORDER BY user_id",
            namespace_id,
        )?;
        rows.into_iter().map(|row| row.text).collect()
    };
    let now_ms = uow.now_ms();
    for chunk in users.chunks(ROWS) {
        let ids = chunk.iter().map(|_| uow.next_id()).collect::<Result<Vec<_>>>()?;
        on_conn!(uow, |conn| {
            let mut query = sqlx::query(values(
                "INSERT INTO data_permission
                     (id, user_id, data_id, data_type, created_ms, updated_ms) VALUES",
                chunk.len(),
                6,
            ));
            for (user, id) in chunk.iter().zip(&ids) {
                query = query
                    .bind(id.as_str())
                    .bind(user.as_str())
                    .bind(data_id)
                    .bind(code(level))
                    .bind(now_ms)
                    .bind(now_ms);
            }
            query.execute(conn).await.map(|_| ())
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// Takes a grant back. Out: whether there was one.
///
/// # Errors
/// The database's.
pub async fn revoke(
    uow: &mut UnitOfWork,
    user_id: &str,
    level: Level,
    data_id: &str,
) -> Result<bool> {
    let gone = execute!(
        uow,
        "DELETE FROM data_permission WHERE user_id = $1 AND data_type = $2 AND data_id = $3",
        user_id,
        code(level),
        data_id,
    )?;
    Ok(gone > 0)
}

/// Takes back all grants on the objects.
pub(super) async fn delete_of(uow: &mut UnitOfWork, level: Level, data_ids: &[&str]) -> Result<()> {
    execute_in!(
        uow,
        "DELETE FROM data_permission WHERE data_type = $1 AND data_id IN ({ids})",
        data_ids,
        code(level),
    );
    Ok(())
}
