//! Log-in, and the constants that consoles build their forms from.

mod enums;
mod login;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    context::Context,
    error::ApiResult,
    permission::Permission::{Authenticated, Public},
    reply::Reply,
    router::Routes,
};

pub(super) fn routes() -> Routes {
    Routes::new("platform")
        .get("/platform/login", Public, "Logs a user in", login::login)
        .get("/platform/secretInfo", Public, "How to encrypt passwords: not at all", secret_info)
        .get("/platform/enum", Authenticated, "The constants of forms", enums::enums)
}

#[derive(Debug, Serialize, ToSchema)]
struct SecretInfo {
    key: &'static str,
    iv: &'static str,
}

/// Always empty: consoles then send the password plainly; clients that have the key encrypt it.
async fn secret_info(_context: Context, (): ()) -> ApiResult<Reply<String>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let empty = SecretInfo { key: "", iv: "" };
    let json = serde_json::to_vec(&empty).map_err(anyhow::Error::from)?;
    Ok(Reply::data(STANDARD.encode(json)))
}
