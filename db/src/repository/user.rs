//! Users of the admin.

use std::fmt;

use crate::statement::{execute, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored user.
#[derive(Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UserRow {
    /// Id of the user.
    pub id: String,
    /// Name to log in with.
    pub user_name: String,
    /// A PHC string of argon2, or the 128 hexadecimal digits of an imported SHA-512.
    pub password: String,
    /// A number without meaning that clients expect.
    pub role: i32,
    /// Whether they may log in.
    pub enabled: bool,
    /// The client of the last login that named one.
    pub client_id: Option<String>,
    /// When the user last set the password, in milliseconds since 1970-01-01 UTC; `None` while it
    /// is the one that was given at set-up.
    pub password_ms: Option<i64>,
    /// When they were created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When they were last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

// By hand, so that the hash reaches no log.
impl fmt::Debug for UserRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserRow")
            .field("id", &self.id)
            .field("user_name", &self.user_name)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

/// A user to store.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NewUser {
    /// Name to log in with.
    pub user_name: String,
    /// See [`UserRow::password`].
    pub password: String,
    /// See [`UserRow::role`].
    pub role: i32,
    /// Whether they may log in.
    pub enabled: bool,
}

impl fmt::Debug for NewUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewUser").field("user_name", &self.user_name).finish_non_exhaustive()
    }
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, user_name, password, role, enabled, client_id, password_ms, created_ms,
                    updated_ms
             FROM dashboard_user ",
            $rest
        )
    };
}

/// One user.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<UserRow>> {
    fetch_optional!(tx, UserRow, select!("WHERE id = $1"), id)
}

/// As [`find`], and holds the user until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_for_update(uow: &mut UnitOfWork, id: &str) -> Result<Option<UserRow>> {
    dialect::hold_rows(uow, "dashboard_user", &[id]).await?;
    find(uow, id).await
}

/// The user of a name, exactly as spelled.
///
/// # Errors
/// The database's.
pub async fn find_by_name(tx: &mut Tx, user_name: &str) -> Result<Option<UserRow>> {
    fetch_optional!(tx, UserRow, select!("WHERE user_name = $1"), user_name)
}

/// Stores a new user. Out: their id.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) for a name that is taken.
pub async fn insert(uow: &mut UnitOfWork, new: &NewUser) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO dashboard_user
             (id, user_name, password, role, enabled, password_ms, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $6, $6)",
        id.as_str(),
        new.user_name.as_str(),
        new.password.as_str(),
        new.role,
        new.enabled,
        now_ms,
    )?;
    Ok(id)
}

/// Notes the client of a login. Moves `updated_ms`, as the reference does. Out: 0 when there is no
/// such user.
///
/// # Errors
/// The database's.
pub async fn set_client_id(uow: &mut UnitOfWork, id: &str, client_id: &str) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE dashboard_user SET client_id = $1, updated_ms = $2 WHERE id = $3",
        client_id,
        now_ms,
        id,
    )
}

/// Sets a password that the user chose, and notes when. Out: 0 when there is no such user.
///
/// # Errors
/// The database's.
pub async fn set_password(uow: &mut UnitOfWork, id: &str, password: &str) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE dashboard_user SET password = $1, password_ms = $2, updated_ms = $2 WHERE id = $3",
        password,
        now_ms,
        id,
    )
}

/// Replaces the hash of an unchanged password by a better one, if nobody changed it meanwhile. Out:
/// 0 when it was changed.
///
/// # Errors
/// The database's.
pub async fn upgrade_hash(uow: &mut UnitOfWork, id: &str, from: &str, to: &str) -> Result<u64> {
    execute!(
        uow,
        "UPDATE dashboard_user SET password = $1 WHERE id = $2 AND password = $3",
        to,
        id,
        from,
    )
}

/// Lets a user log in or not. Out: 0 when there is no such user.
///
/// # Errors
/// The database's.
pub async fn set_enabled(uow: &mut UnitOfWork, id: &str, enabled: bool) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE dashboard_user SET enabled = $1, updated_ms = $2 WHERE id = $3",
        enabled,
        now_ms,
        id,
    )
}
