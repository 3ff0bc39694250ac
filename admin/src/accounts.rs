//! Users and what they may do.

use std::sync::Arc;

use crate::error::ApiResult;

/// A user, as the token check needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The stored password hash, which is also the key of its tokens.
    pub password_hash: String,
    /// Whether it may log in.
    pub enabled: bool,
    /// The client of the last log-in that named one.
    pub client_id: Option<String>,
    /// When it was last changed, epoch milliseconds.
    pub updated_ms: i64,
}

/// The accounts of an installation.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    known: Arc<Vec<Account>>,
}

impl Accounts {
    /// Exactly these.
    #[must_use]
    pub fn of(known: Vec<Account>) -> Self {
        Self { known: Arc::new(known) }
    }

    /// The account of a user name.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn find(&self, name: &str) -> ApiResult<Option<Account>> {
        Ok(self.known.iter().find(|account| account.name == name).cloned())
    }

    /// The permission strings of a user's roles.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn permissions(&self, _user_id: &str) -> ApiResult<Vec<String>> {
        Ok(Vec::new())
    }
}
