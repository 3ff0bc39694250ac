//! Roles, and who has them.

use crate::Result;
use crate::statement::{execute, fetch_all, fetch_optional};
use crate::tx::{Tx, UnitOfWork};

/// Id of the role that holds everything.
pub const SUPER_ROLE: &str = "1346358560427216896";

/// Id of the role of ordinary users.
pub const DEFAULT_ROLE: &str = "1385482862971723776";

/// A stored role.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RoleRow {
    /// Id of the role.
    pub id: String,
    /// Its name; need not be unique.
    pub role_name: String,
    /// Free text.
    pub description: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// All roles, by id.
///
/// # Errors
/// The database's.
pub async fn all(tx: &mut Tx) -> Result<Vec<RoleRow>> {
    fetch_all!(
        tx,
        RoleRow,
        "SELECT id, role_name, description, created_ms, updated_ms FROM role ORDER BY id",
    )
}

/// One role.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<RoleRow>> {
    fetch_optional!(
        tx,
        RoleRow,
        "SELECT id, role_name, description, created_ms, updated_ms FROM role WHERE id = $1",
        id,
    )
}

/// The roles of a user, by id.
///
/// # Errors
/// The database's.
pub async fn of_user(tx: &mut Tx, user_id: &str) -> Result<Vec<RoleRow>> {
    fetch_all!(
        tx,
        RoleRow,
        "SELECT r.id, r.role_name, r.description, r.created_ms, r.updated_ms
         FROM role r JOIN user_role u ON u.role_id = r.id WHERE u.user_id = $1 ORDER BY r.id",
        user_id,
    )
}

/// Stores a new role without grants. Out: its id.
///
/// # Errors
/// The database's.
pub async fn insert(
    uow: &mut UnitOfWork,
    role_name: &str,
    description: Option<&str>,
) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO role (id, role_name, description, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $4)",
        id.as_str(),
        role_name,
        description,
        now_ms,
    )?;
    Ok(id)
}

/// Gives a role to a user; again is no error.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) when either does not exist.
pub async fn assign(uow: &mut UnitOfWork, user_id: &str, role_id: &str) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO user_role (id, user_id, role_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $4) ON CONFLICT (user_id, role_id) DO NOTHING",
        id.as_str(),
        user_id,
        role_id,
        now_ms,
    )?;
    Ok(())
}

/// Lets a role hold a resource; again is no error.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) when either does not exist.
pub async fn grant(uow: &mut UnitOfWork, role_id: &str, resource_id: &str) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO permission (id, object_id, resource_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $4) ON CONFLICT (object_id, resource_id) DO NOTHING",
        id.as_str(),
        role_id,
        resource_id,
        now_ms,
    )?;
    Ok(())
}
