//! Making and checking tokens.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::error::ApiResult;

/// Where a token travels: header, query parameter and cookie of this name, in this order.
pub const TOKEN_HEADER: &str = "X-Access-Token";

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// The user it was given to.
    pub user_name: String,
    /// The client it was given to, if that named itself.
    #[serde(default)]
    pub client_id: Option<String>,
    /// End of its life, in seconds since 1970-01-01 UTC.
    pub exp: i64,
}

/// A token signed with `key`, the stored password hash of its user.
///
/// # Errors
/// Failures of the signing itself, such as an empty key.
pub fn issue(claims: &Claims, key: &str) -> ApiResult<String> {
    let key = EncodingKey::from_secret(key.as_bytes()).map_err(anyhow::Error::from)?;
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key);
    Ok(token.map_err(anyhow::Error::from)?)
}

/// What a token claims, unchecked: to find the user by whose key it is checked.
pub(super) fn unchecked_user(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        user_name: String,
    }
    let data = jsonwebtoken::dangerous::insecure_decode::<Named>(token).ok()?;
    // No user has such a name, and not every store can be asked for it.
    let name = Some(data.claims.user_name).filter(|name| !name.contains('\0'));
    name.filter(|_| data.header.alg == Algorithm::HS256)
}

/// The claims of a token that is signed with `key` and not past its end at `now_ms`.
pub(super) fn verify(token: &str, key: &str, now_ms: i64) -> Option<Claims> {
    if key.is_empty() {
        return None;
    }
    let mut validation = Validation::new(Algorithm::HS256);
    validation.leeway = 0;
    // Checked below against our own clock.
    validation.validate_exp = false;
    validation.set_required_spec_claims(&["exp"]);
    let key = DecodingKey::from_secret(key.as_bytes()).ok()?;
    let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation).ok()?.claims;
    (claims.exp.saturating_mul(1000) > now_ms).then_some(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(exp: i64) -> Claims {
        Claims { user_name: "lina".to_owned(), client_id: None, exp }
    }

    #[test]
    fn a_token_is_good_for_its_key_until_its_end() {
        let token = issue(&claims(1000), "hash").unwrap();
        assert_eq!(unchecked_user(&token).as_deref(), Some("lina"));
        assert_eq!(verify(&token, "hash", 999_999), Some(claims(1000)));
        assert_eq!(verify(&token, "hash", 1_000_000), None);
        assert_eq!(verify(&token, "other", 0), None);
        assert_eq!(verify(&token, "", 0), None);
    }

    #[test]
    fn a_name_that_no_store_can_look_up_names_nobody() {
        let token = issue(&Claims { user_name: "li\0na".to_owned(), ..claims(1000) }, "hash");
        assert_eq!(unchecked_user(&token.unwrap()), None);
    }

    #[test]
    fn forgeries_are_not_taken() {
        let token = issue(&claims(1000), "hash").unwrap();
        let (head, _) = token.rsplit_once('.').unwrap();
        let payload = token.split('.').nth(1).unwrap();
        // {"alg":"none"} and {"alg":"HS512"}
        for forged in [
            String::new(),
            "x".to_owned(),
            format!("{head}."),
            format!("{head}.AAAA"),
            format!("eyJhbGciOiJub25lIn0.{payload}."),
            format!("eyJhbGciOiJIUzUxMiJ9.{payload}.AAAA"),
        ] {
            assert_eq!(verify(&forged, "hash", 0), None, "{forged}");
        }
    }
}
