//! Who may open a session, and as what. No I/O here.

use std::net::SocketAddr;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use longmen_core::model::{DEFAULT_NAMESPACE, MAX_ID_BYTES};
use longmen_core::sync::{
    INSTANCE_HEADER, NAMESPACE_HEADER, NEGOTIATION_HEADER, NEGOTIATION_VERSION, PORT_HEADER,
    TOKEN_HEADER,
};
use serde_json::json;

use super::token::SyncToken;
use crate::config::WebsocketSyncConfig;

/// Headers by which a proxy on this machine shows that the peer is not the gateway itself.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// What a handshake asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Opening {
    /// The namespace whose objects the gateway gets.
    pub(super) namespace: String,
    /// The port the gateway says it serves on.
    pub(super) port: Option<u16>,
    /// Whether the gateway speaks our additions.
    pub(super) ours: bool,
    /// What the gateway calls itself, and the number of this session among all that it opened.
    pub(super) instance: Option<(String, i64)>,
}

/// Why a handshake is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The `Origin` is not on the list, or it is a web page's.
    Origin,
    /// The sync token is missing or another.
    Token,
    /// The namespace cannot be an id.
    Namespace,
}

impl Refusal {
    /// The answer, in the form that a stock admin gives its refusals.
    pub(super) fn response(self, now_ms: i64) -> Response {
        let (status, error, message) = match self {
            // A stock admin answers no more than this.
            Self::Origin => (StatusCode::FORBIDDEN, "Forbidden", None),
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                "Unauthorized",
                Some("X-Sync-Token is missing or wrong, expected the admin's sync token"),
            ),
            Self::Namespace => (
                StatusCode::BAD_REQUEST,
                "Bad Request",
                Some("namespaceId is no id, expected at most 128 bytes of UTF-8"),
            ),
        };
        let status_code = status.as_u16();
        let mut body = json!({"timestamp": timestamp(now_ms), "status": status_code,
            "error": error, "path": "/websocket"});
        if let Some(message) = message {
            body["message"] = message.into();
        }
        (status, Json(body)).into_response()
    }
}

fn timestamp(now_ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(now_ms).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}

/// Judges a handshake by its headers and the address it came from.
///
/// A missing or empty namespace is the default one, a missing port unknown: older gateways send
/// neither. The token is asked of every peer that is not this machine itself.
///
/// Without a token a web page is let in only if the list names its origin: any page that a browser
/// on this machine shows could read the configuration otherwise. Gateways name `ws://` origins, or
/// none.
///
/// # Errors
/// Why it is refused.
///
/// Source: ShenYu 2.7.1, handshakes as executed; a missing namespace or port is a 500 there.
pub(super) fn admit(
    headers: &HeaderMap,
    peer: Option<SocketAddr>,
    config: &WebsocketSyncConfig,
    token: &SyncToken,
) -> Result<Opening, Refusal> {
    let origin = headers.get(header::ORIGIN).map(http::HeaderValue::as_bytes);
    let is_origin = |allowed: &String| Some(allowed.as_bytes()) == origin;
    let listed = config.allow_origins.iter().any(is_origin);
    if !config.allow_origins.is_empty() && !listed {
        return Err(Refusal::Origin);
    }
    let local = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        && !FORWARDED.iter().any(|name| headers.contains_key(*name));
    if !headers.get(TOKEN_HEADER).is_some_and(|given| token.is(given.as_bytes())) {
        if !local && !config.allow_anonymous {
            return Err(Refusal::Token);
        }
        if !listed && origin.is_some_and(|origin| !is_gateway_s(origin)) {
            return Err(Refusal::Origin);
        }
    }
    Ok(Opening {
        instance: text(headers, INSTANCE_HEADER).and_then(instance),
        namespace: namespace(headers)?,
        port: text(headers, PORT_HEADER).and_then(|port| port.trim().parse().ok()),
        ours: text(headers, NEGOTIATION_HEADER).map(str::trim) == Some(NEGOTIATION_VERSION),
    })
}

/// Whether an origin can be that of a gateway. What a browser sends is the scheme of the page, or
/// `null`, and never this: pages are not served over websockets.
fn is_gateway_s(origin: &[u8]) -> bool {
    let scheme = origin.split(|byte| *byte == b':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"ws") || scheme.eq_ignore_ascii_case(b"wss")
}

/// Reads `name.session`; a name has at most 64 letters, digits and dashes.
fn instance(text: &str) -> Option<(String, i64)> {
    let (name, session) = text.trim().split_once('.')?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    let named = (1..=64).contains(&name.len()) && name.bytes().all(plain);
    let session = session.parse().ok().filter(|session| *session >= 0)?;
    named.then(|| (name.to_owned(), session))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn namespace(headers: &HeaderMap) -> Result<String, Refusal> {
    let Some(value) = headers.get(NAMESPACE_HEADER) else {
        return Ok(DEFAULT_NAMESPACE.to_owned());
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok("") => Ok(DEFAULT_NAMESPACE.to_owned()),
        Ok(id) if id.len() <= MAX_ID_BYTES => Ok(id.to_owned()),
        _ => Err(Refusal::Namespace),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use serde_json::Value;

    use super::*;
    use crate::config::AdminConfig;

    const RECORDED: &str = include_str!("../../tests/golden/websocket/handshake-liveness.jsonl");

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let pairs = lines.iter().map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        pairs.collect()
    }

    fn token() -> SyncToken {
        SyncToken::open(Some("secret"), std::path::Path::new("unused")).unwrap()
    }

    fn open_to_all() -> WebsocketSyncConfig {
        AdminConfig::default().sync.websocket
    }

    fn shipped() -> WebsocketSyncConfig {
        let text = "shenyu: {sync: {websocket: {allowOrigins: \
                    'ws://localhost:9095;ws://localhost:9195;'}}}";
        AdminConfig::from_yaml(text).unwrap().sync.websocket
    }

    fn here() -> Option<SocketAddr> {
        Some("127.0.0.1:4000".parse().unwrap())
    }

    #[test]
    fn recorded_handshakes_get_the_recorded_answer_but_for_what_older_gateways_leave_out() {
        let mut judged = 0;
        for line in RECORDED.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(request) = line["request"].as_str() else { continue };
            let lines: Vec<(&str, &str)> =
                request.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
            if !request.starts_with("GET /websocket ") {
                continue;
            }
            let note = line["note"].as_str().unwrap();
            let recorded = line["response"].as_str().unwrap()["HTTP/1.1 ".len()..].get(..3);
            let expected = match note {
                "no namespaceId" | "no ClientPort" => "101",
                _ => recorded.unwrap(),
            };
            let answer = match admit(&headers(&lines), here(), &shipped(), &token()) {
                Ok(_) => "101".to_owned(),
                Err(refusal) => refusal.response(0).status().as_str().to_owned(),
            };
            assert_eq!(answer, expected, "{note}");
            judged += 1;
        }
        assert_eq!(judged, 11);
    }

    #[test]
    fn namespace_port_and_dialect_come_from_the_headers() {
        let settings = open_to_all();
        let open = |lines: &[(&str, &str)]| admit(&headers(lines), here(), &settings, &token());
        let opening = open(&[("NamespaceID", "ns"), ("clientport", "9195")]).unwrap();
        assert_eq!(
            (opening.namespace.as_str(), opening.port, opening.ours),
            ("ns", Some(9195), false)
        );
        let opening = open(&[("clientport", "many"), ("x-longmen-sync", "1")]).unwrap();
        assert_eq!(
            (opening.namespace.as_str(), opening.port, opening.ours),
            (DEFAULT_NAMESPACE, None, true)
        );
        assert!(!open(&[("x-longmen-sync", "2")]).unwrap().ours);
        assert_eq!(open(&[("namespaceid", &"n".repeat(129))]), Err(Refusal::Namespace));
    }

    #[test]
    fn a_page_on_the_list_is_let_in() {
        let allow_origins = vec!["https://console.example".to_owned()];
        let settings = WebsocketSyncConfig { allow_origins, ..open_to_all() };
        let open = |origin: &str| {
            admit(&headers(&[("origin", origin)]), here(), &settings, &token()).map(|_| ())
        };
        assert_eq!(open("https://console.example"), Ok(()));
        assert_eq!(open("https://console.example.org"), Err(Refusal::Origin));
    }

    #[test]
    fn the_token_is_asked_of_everyone_who_is_not_this_machine() {
        let open = |peer: Option<&str>, lines: &[(&str, &str)], allow_anonymous: bool| {
            let settings = WebsocketSyncConfig { allow_anonymous, ..open_to_all() };
            let peer = peer.map(|peer| peer.parse().unwrap());
            admit(&headers(lines), peer, &settings, &token()).is_ok()
        };
        let good = ("x-sync-token", "secret");
        assert!(open(Some("127.0.0.1:1"), &[], false));
        assert!(open(Some("[::1]:1"), &[], false));
        assert!(open(Some("[::ffff:127.0.0.1]:1"), &[], false));
        for peer in [Some("10.0.0.9:1"), Some("[2001:db8::1]:1"), None] {
            assert!(!open(peer, &[], false), "{peer:?}");
            assert!(!open(peer, &[("x-sync-token", "Secret")], false), "{peer:?}");
            assert!(open(peer, &[good], false), "{peer:?}");
            assert!(open(peer, &[], true), "{peer:?}");
        }
        // A page that a browser shows is not this machine itself.
        for origin in
            ["http://evil.example", "https://localhost:9095", "null", "chrome-extension://x"]
        {
            let page = ("origin", origin);
            assert!(!open(Some("127.0.0.1:1"), &[page], false), "{origin}");
            assert!(!open(Some("10.0.0.9:1"), &[page], true), "{origin}");
            assert!(open(Some("127.0.0.1:1"), &[page, good], false), "{origin}");
        }
        for origin in ["ws://localhost:9195", "WSS://gateway"] {
            assert!(open(Some("127.0.0.1:1"), &[("origin", origin)], false), "{origin}");
        }
        // A proxy on this machine brings others in.
        for name in FORWARDED {
            assert!(!open(Some("127.0.0.1:1"), &[(name, "10.0.0.9")], false), "{name}");
            assert!(open(Some("127.0.0.1:1"), &[(name, "10.0.0.9"), good], false), "{name}");
        }
    }
}
