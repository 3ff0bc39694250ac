//! The guard on the super user's password.
//!
//! Calls that only the super user may make are refused to the super user too while the password is
//! the one that every installation of the reference starts with, or older than allowed.
//!
//! Source: ShenYu 2.7.1 admin. Ours: the first check asks whether the password was ever set by its
//! user; the reference compares two dates, which the next log-in of a console makes differ.

use longmen_db::repository::user;

use super::Caller;
use crate::{
    error::{ApiError, ApiResult},
    state::AppState,
};

const STILL_DEFAULT: &str =
    "The password is the default password and you must complete the change once";
const TOO_OLD: &str = "If the password has not been changed for a long time,  please use it after \
                       changing it to ensure the security of the super administrator account";

/// Refuses a call of the super user that needs one of the reserved permissions, if the password is
/// not fit for it.
///
/// # Errors
/// One of the two texts; failures of the store.
pub async fn guard_super_user(state: &AppState, caller: &Caller, wanted: &[&str]) -> ApiResult<()> {
    let dashboard = &state.config().security.dashboard;
    let reserved = wanted
        .iter()
        .any(|wanted| dashboard.only_super_admin_permissions.iter().any(|one| one == wanted));
    if !reserved || dashboard.super_admin_password_valid.is_none() {
        return Ok(());
    }
    match password_age_fault(state, &caller.name).await? {
        Some(fault) => Err(ApiError::refused(fault)),
        None => Ok(()),
    }
}

/// What is wrong with the password of the named user, if anything.
///
/// # Errors
/// Failures of the store.
pub async fn password_age_fault(state: &AppState, name: &str) -> ApiResult<Option<&'static str>> {
    let mut tx = state.store().read().await?;
    let Some(user) = user::find_by_name(&mut tx, name).await? else { return Ok(None) };
    let Some(set_ms) = user.password_ms else { return Ok(Some(STILL_DEFAULT)) };
    // Without a limit of its own the page that asks is told of the first password alone.
    let Some(limit) = state.config().security.dashboard.super_admin_password_valid else {
        return Ok(None);
    };
    let age_ms = u128::try_from(state.now_ms() - set_ms).unwrap_or_default();
    Ok((age_ms > limit.as_millis()).then_some(TOO_OLD))
}
