//! What must not be shown: which members, headers and parameters hold secrets.

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use smallvec::SmallVec;

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

/// What a parameter's name contains, letters in lower case, when its value is a secret.
///
/// Rather a value too few that is shown than one too many: `keyword` loses its value to `key`.
const PARTS: [&str; 11] =
    ["pass", "pwd", "secret", "token", "key", "sign", "auth", "cred", "session", "jwt", "cookie"];

/// Whole names of secrets, too short to be looked for inside others.
const NAMES: [&str; 5] = ["code", "otp", "pin", "sid", "sig"];

/// Whether a parameter of a query may hold a secret, by its name as sent.
#[must_use]
pub fn is_secret_parameter(name: &str) -> bool {
    let lower = undone(name);
    let holds = |part: &&str| lower.windows(part.len()).any(|window| window == part.as_bytes());
    NAMES.iter().any(|name| *lower == *name.as_bytes()) || PARTS.iter().any(holds)
}

/// A name with its escapes undone and its letters in lower case.
fn undone(name: &str) -> SmallVec<[u8; 64]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut lower = SmallVec::new();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let mut byte = *first;
        if let (b'%', [high, low, after @ ..]) = (byte, after)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            byte = u8::try_from(high * 16 + low).unwrap_or(byte);
            rest = after;
        }
        lower.push(byte.to_ascii_lowercase());
    }
    lower
}

/// A path with its query, the secret parameters of the query masked.
#[must_use]
pub fn target(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let parameter = |one: &str| match one.split_once('=') {
        Some((name, value)) if is_secret_parameter(name) && !value.is_empty() => {
            format!("{name}={MASK}")
        }
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
            ("/a?%70assword=x&c=d", "/a?%70assword=******&c=d"),
        ] {
            assert_eq!(target(sent), shown);
        }
    }
}
