//! Targets without the secrets that their queries carry.

use http::Uri;

use crate::mask::is_secret_parameter;

/// The most bytes of a target that a line holds.
const LONGEST: usize = 2048;

/// Appends path and query: values of secret parameters become `***`, characters that would have to be
/// escaped in a quoted text are percent-encoded, and what is too long is cut and ends in `...`.
pub(super) fn push_target(out: &mut Vec<u8>, target: &Uri) {
    let end = out.len() + LONGEST;
    push(out, target.path(), end);
    if let Some(query) = target.query() {
        let mut separator = "?";
        for pair in query.split('&') {
            push(out, separator, end);
            separator = "&";
            match pair.split_once('=') {
                Some((name, _)) if is_secret_parameter(name) => {
                    push(out, name, end);
                    push(out, "=***", end);
                }
                _ => push(out, pair, end),
            }
        }
    }
    if out.len() > end {
        out.truncate(end);
        out.extend_from_slice(b"...");
    }
}

fn push(out: &mut Vec<u8>, text: &str, end: usize) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if out.len() > end {
            return;
        }
        if byte.is_ascii_graphic() && byte != b'"' && byte != b'\\' {
            out.push(byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push_target;

    fn masked(target: &str) -> String {
        let mut out = b">".to_vec();
        push_target(&mut out, &target.parse().unwrap());
        String::from_utf8(out).unwrap().split_off(1)
    }

    #[test]
    fn secrets_in_queries_are_never_logged() {
        for (target, logged) in [
            ("/a/b", "/a/b"),
            ("/a?", "/a?"),
            ("/a?x=1&y", "/a?x=1&y"),
            ("http://user:pw@host/a?x=1", "/a?x=1"),
            (
                "/platform/login?userName=admin&password=123456",
                "/platform/login?userName=admin&password=***",
            ),
            ("/a?access_token=x&b=2", "/a?access_token=***&b=2"),
            ("/a?Api-Key=x", "/a?Api-Key=***"),
            ("/a?%70assword=x", "/a?%70assword=***"),
            ("/a?p%61%53%73=x=y", "/a?p%61%53%73=***"),
            ("/a?user[pwd]=x", "/a?user[pwd]=***"),
            ("/a?code=x&zipcode=1", "/a?code=***&zipcode=1"),
            ("/a?secret", "/a?secret"),
        ] {
            assert_eq!(masked(target), logged, "{target}");
        }
    }

    #[test]
    fn long_targets_are_cut() {
        let logged = masked(&format!("/{}?password=hidden", "x".repeat(4000)));
        assert_eq!(logged.len(), super::LONGEST + 3);
        assert!(logged.ends_with("x..."));
        let logged = masked(&format!("/{}?password=hidden", "x".repeat(2030)));
        assert!(!logged.contains("hidden"), "{logged}");
    }
}
