//! A user's own password.

use longmen_db::{
    Change, GLOBAL, Operation,
    repository::user::{self, UserRow},
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    audit,
    auth::{self, Verdict},
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Body, Path, RequestBody, Violations, lenient},
    permission::Permission::Authenticated,
    reply::Reply,
    router::Routes,
    state::AppState,
};

/// Kind of the change rows; gateways never see them.
const KIND: &str = "USER";

/// Characters that count as special in a password.
const SPECIAL: &str = "@$!%*?&#.=_+-";

pub(super) fn routes() -> Routes {
    Routes::new("user")
        .get(
            "/dashboardUser/check/password",
            Authenticated,
            "Whether the caller's password may stay",
            check_password,
        )
        .put(
            "/dashboardUser/modify-password/{id}",
            Authenticated,
            "Changes the caller's password",
            modify_password,
        )
}

/// A change of password.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PasswordRequest {
    #[serde(default, deserialize_with = "lenient::opt_string")]
    user_name: Option<String>,
    /// The new password, in plain text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    password: Option<String>,
    /// The password in force.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    old_password: Option<String>,
}

impl RequestBody for PasswordRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_null("password", self.password.as_ref());
        if self.password.as_deref().is_some_and(|password| !is_strong(password)) {
            rules.add(
                "password",
                "Minimum length of 8, including upper and lower case letters, numbers and special \
                 characters",
            );
        }
        rules.not_null("oldPassword", self.old_password.as_ref());
        Ok(())
    }
}

/// At least eight characters, at least one of each class, and none of another.
fn is_strong(password: &str) -> bool {
    let has = |class: fn(char) -> bool| password.chars().any(class);
    password.chars().count() >= 8
        && has(|c| c.is_ascii_lowercase())
        && has(|c| c.is_ascii_uppercase())
        && has(|c| c.is_ascii_digit())
        && has(|c| SPECIAL.contains(c))
        && password.chars().all(|c| c.is_ascii_alphanumeric() || SPECIAL.contains(c))
}

async fn check_password(context: Context, (): ()) -> ApiResult<Reply<bool>> {
    let name = &context.caller()?.name;
    match auth::password_age_fault(context.state(), name).await? {
        Some(fault) => Err(ApiError::refused(fault)),
        None => Ok(Reply::new("ok", true)),
    }
}

async fn modify_password(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<PasswordRequest>),
) -> ApiResult<Reply<u64>> {
    let caller = context.caller()?;
    if caller.user_id != id && request.user_name.as_deref() != Some(caller.name.as_str()) {
        return Err(ApiError::refused("can not modify other user password"));
    }
    let mut tx = context.read().await?;
    let user = user::find(&mut tx, &id).await?;
    drop(tx);
    let user = user.ok_or_else(|| ApiError::refused("current user is not found"))?;
    // By name alone a caller could otherwise reach the row of another user.
    if user.id != caller.user_id {
        return Err(ApiError::refused("can not modify other user password"));
    }
    if !user.enabled {
        return Err(ApiError::refused("current user is locked"));
    }
    let passwords = context.state().passwords();
    let old = request.old_password.unwrap_or_default();
    if passwords.verify(Some(user.password.clone()), old).await? == Verdict::Wrong {
        return Err(ApiError::refused("old password is error"));
    }
    let hash = passwords.hash(request.password.unwrap_or_default()).await?;
    Ok(Reply::new("update success", store(&context, &user, &hash).await?))
}

/// Stores the new hash, unless the password was changed while it was computed.
async fn store(context: &Context, user: &UserRow, hash: &str) -> ApiResult<u64> {
    let mut uow = context.begin().await?;
    let current = user::find_for_update(&mut uow, &user.id).await?;
    if current.is_none_or(|current| current.password != user.password) {
        return Err(ApiError::refused("old password is error"));
    }
    let count = user::set_password(&mut uow, &user.id, hash).await?;
    uow.record(Change::internal(GLOBAL, KIND, &*user.id, Operation::Update));
    audit::updated(&mut uow, audit::Kind::User, &user.user_name, "password").await?;
    uow.commit().await?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::is_strong;

    #[test]
    fn strong_passwords_have_all_classes_and_no_other() {
        for (password, strong) in [
            ("Adm1n#Pass", true),
            ("Aa1@aaaa", true),
            ("Aa1@aaa", false),
            ("adm1n#pass", false),
            ("ADM1N#PASS", false),
            ("Admin#Pass", false),
            ("Adm1nPasss", false),
            ("Adm1n#Pass ", false),
            ("Adm1n#Päss", false),
            ("123456", false),
        ] {
            assert_eq!(is_strong(password), strong, "{password}");
        }
    }
}
