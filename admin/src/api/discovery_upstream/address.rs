//! What an upstream may hold.

use serde_json::Value;

use crate::api::common::MAX_KEY_BYTES;
use crate::extract::too_long;

/// Checks the members of an upstream that are read by gateways.
///
/// An address is `host`, `host:port` or `[v6]:port`, with a scheme or a path if need be: gateways
/// put the scheme before it and the path of the request behind it.
///
/// # Errors
/// Field, value and expectation of the first fault. Ours: the reference stores anything, and its
/// gateways then fail on requests.
pub(crate) fn check_upstream(
    url: &str,
    status: i32,
    weight: i32,
    props: Option<&str>,
) -> Result<(), String> {
    if url.len() > MAX_KEY_BYTES {
        return Err(format!("url: {}", too_long(url, MAX_KEY_BYTES)));
    }
    if !is_address(url) {
        return Err(format!(
            "url: {url:?} is no address, expected host:port with a port from 1 to 65535"
        ));
    }
    if !(0..=1).contains(&status) {
        return Err(format!("status: {status} is none, expected 0 (usable) or 1 (down)"));
    }
    if weight < 0 {
        return Err(format!("weight: {weight} is negative, expected 0 or more"));
    }
    let Some(text) = props.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Ok(()),
        _ => Err(format!(
            "props: {text:?} is no JSON object, expected one such as {{\"warmup\":\"10\"}}"
        )),
    }
}

fn is_address(url: &str) -> bool {
    if url.is_empty() || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return false;
    }
    let port = if let Some(v6) = authority.strip_prefix('[') {
        let Some((host, after)) = v6.split_once(']') else { return false };
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return false;
        }
        match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return false,
        }
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        if host.is_empty() {
            return false;
        }
        port
    };
    port.is_none_or(|port| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::{check_upstream, is_address};

    #[test]
    fn addresses() {
        for good in [
            "127.0.0.1:9481",
            "localhost",
            "a.b:1",
            "[::1]:8080",
            "[::1]",
            "http://a:80",
            "a:80/base",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "", " a:1", "a b:1", ":80", "a:", "a:0", "a:65536", "a:+1", "a:b", "::1", "[::1",
            "[x]:1", "[::1]x", "u:p@a:1", "http://", "a:1\n",
        ] {
            assert!(!is_address(bad), "{bad:?}");
        }
    }

    #[test]
    fn each_fault_names_field_value_and_expectation() {
        for (url, status, weight, props, text) in [
            (
                "a:99999",
                0,
                1,
                None,
                "url: \"a:99999\" is no address, expected host:port with a port from 1 to 65535",
            ),
            ("a:1", 2, 1, None, "status: 2 is none, expected 0 (usable) or 1 (down)"),
            ("a:1", 0, -1, None, "weight: -1 is negative, expected 0 or more"),
            (
                "a:1",
                0,
                1,
                Some("[]"),
                "props: \"[]\" is no JSON object, expected one such as {\"warmup\":\"10\"}",
            ),
        ] {
            assert_eq!(check_upstream(url, status, weight, props).unwrap_err(), text);
        }
        assert_eq!(check_upstream("a:1", 1, 0, Some("{\"gray\":\"true\"}")), Ok(()));
        assert_eq!(check_upstream("a:1", 0, 100, Some("")), Ok(()));
    }
}
