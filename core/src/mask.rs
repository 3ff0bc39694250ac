//! What must not be shown: which members, headers and parameters hold secrets.

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

/// What stands in the place of a secret.
pub const MASK: &str = "******";

/// Whether a member, header or parameter of this name may hold a secret. Case, `-` and `_` do not
/// matter.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let plain = |c: &char| !matches!(c, '-' | '_');
    let name: String = name.chars().filter(plain).map(|c| c.to_ascii_lowercase()).collect();
    let words = [
        "password",
        "passwd",
        "secret",
        "token",
        "apikey",
        "appkey",
        "accesskey",
        "privatekey",
        "decryptkey",
        "encryptkey",
        "credential",
        "signature",
    ];
    words.iter().any(|word| name.contains(word)) || name == "key" || name == "sign"
}

/// Whether a header of this name may hold a secret.
#[must_use]
pub fn is_secret_header(name: &HeaderName) -> bool {
    let known = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE];
    known.contains(name) || name.as_str().contains("session") || is_secret(name.as_str())
}

/// A path with its query, the secret parameters of the query masked.
#[must_use]
pub fn target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let parameter = |one: &str| match one.split_once('=') {
        Some((name, value)) if is_secret(name) && !value.is_empty() => format!("{name}={MASK}"),
        _ => one.to_owned(),
    };
    let masked: Vec<String> = query.split('&').map(parameter).collect();
    format!("{path}?{}", masked.join("&"))
}

#[cfg(test)]
mod tests {
    use super::{is_secret, is_secret_header, target};

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in ["password", "appSecret", "X-Api-Key", "api_key", "accessToken", "key", "sign"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["retry", "keyName", "monkey", "design", "path", "timestamp"] {
            assert!(!is_secret(name), "{name}");
        }
        for name in ["authorization", "cookie", "appkey", "x-access-token", "proxy-authorization"] {
            assert!(is_secret_header(&name.parse().unwrap()), "{name}");
        }
        assert!(!is_secret_header(&"accept".parse().unwrap()));
    }

    #[test]
    fn of_a_target_only_secret_parameters_are_masked() {
        for (sent, shown) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?b=1&token=x&token=&key", "/a?b=1&token=******&token=&key"),
            ("/token=1?api-key=1?2", "/token=1?api-key=******"),
        ] {
            assert_eq!(target(sent), shown);
        }
    }
}
