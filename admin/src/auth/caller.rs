//! The user behind a token.

use longmen_db::repository::permission;

use crate::{error::ApiResult, permission::Granted, state::AppState};

/// Who calls: a user whose token is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Id of the user.
    pub user_id: String,
    /// Name of the user.
    pub name: String,
    /// The client that the token was given to, if it named itself: consoles do.
    pub client_id: Option<String>,
}

impl Caller {
    /// What the user's roles grant, without what is the super user's alone.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn granted(&self, state: &AppState) -> ApiResult<Granted> {
        let mut tx = state.store().read().await?;
        let strings = permission::of_user(&mut tx, &self.user_id).await?;
        Ok(Granted::new(strings, &state.config().security.dashboard.only_super_admin_permissions))
    }
}
