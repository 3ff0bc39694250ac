//! What the upstream is told about the way a request came.
//!
//! Written into the request once, before the first attempt, so that a retry says the same. tower-http
//! has nothing for forwarding headers; its request-id layers believe any id a client sends and keep
//! it in the request's extensions, which allocate.

use http::header::{FORWARDED, HOST, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use super::client_address::X_FORWARDED_FOR;
use super::edge::Forwarded;
use super::{Connection, RequestContext};

static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
static X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The header of the request id.
pub static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest request id that is taken from a client, in bytes.
const MAX_ID: usize = 128;

/// Adds forwarding headers, request id and `traceparent`, as configured. Costs nothing when all are
/// off; otherwise one short allocation for the id and one for the trace, and one for each list that is
/// added to.
pub(super) fn apply(cx: &mut RequestContext) {
    let connection = &*cx.connection;
    let edge = &*connection.edge;
    if edge.forwarded != Forwarded::Off {
        let authority = cx.head.uri.authority().map(http::uri::Authority::as_str);
        forwarded(&mut cx.head.headers, connection, cx.head.version, authority);
    }
    if edge.id_upstream {
        if let Some(id) = &cx.request_id {
            cx.head.headers.insert(&X_REQUEST_ID, id.clone());
        }
        trace(&mut cx.head.headers);
    }
}

fn forwarded(
    headers: &mut HeaderMap,
    connection: &Connection,
    version: Version,
    authority: Option<&str>,
) {
    let via = HeaderValue::from_static(match version {
        Version::HTTP_2 => "2 longmen",
        Version::HTTP_10 => "1.0 longmen",
        _ => "1.1 longmen",
    });
    let edge = &*connection.edge;
    let believed = edge.forwarded == Forwarded::Append && edge.trusts(connection.peer.ip());
    if believed {
        add(headers, &X_FORWARDED_FOR, connection.peer_value());
        add(headers, &VIA, &via);
    } else {
        headers.insert(&X_FORWARDED_FOR, connection.peer_value().clone());
        headers.insert(VIA, via);
        // Other spellings of the same claims, which an upstream might prefer.
        for name in [&FORWARDED, &X_FORWARDED_PORT, &X_FORWARDED_PREFIX] {
            headers.remove(name);
        }
    }
    if !believed || !one_line(headers, &X_FORWARDED_PROTO) {
        headers.insert(&X_FORWARDED_PROTO, HeaderValue::from_static(connection.scheme()));
    }
    if !believed || !one_line(headers, &X_FORWARDED_HOST) {
        let host = headers.get(HOST).cloned();
        match host.or_else(|| HeaderValue::from_str(authority?).ok()) {
            Some(host) => headers.insert(&X_FORWARDED_HOST, host),
            None => headers.remove(&X_FORWARDED_HOST),
        };
    }
}

/// Whether exactly one line is there and says something.
fn one_line(headers: &HeaderMap, name: &HeaderName) -> bool {
    let mut lines = headers.get_all(name).iter();
    lines.next().is_some_and(|first| !first.is_empty()) && lines.next().is_none()
}

/// Adds an element to a list, all lines of which become one.
fn add(headers: &mut HeaderMap, name: &HeaderName, element: &HeaderValue) {
    let mut joined: Vec<u8> = Vec::new();
    for line in headers.get_all(name).iter().map(HeaderValue::as_bytes).chain([element.as_bytes()])
    {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        if !joined.is_empty() {
            joined.extend_from_slice(b", ");
        }
        joined.extend_from_slice(line);
    }
    // Joined values are as legal as they were apart.
    let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(joined));
    headers.insert(name, value.unwrap_or_else(|_| element.clone()));
}

/// Keeps a valid `traceparent` as it is: the gateway records no span of its own, and a parent that
/// nobody knows would cut the trace in two. Otherwise begins a trace, sampled, as an upstream without
/// a gateway in front would by default.
///
/// Source: W3C Trace Context, sections 3.2 and 4.3.
fn trace(headers: &mut HeaderMap) {
    let mut lines = headers.get_all(&TRACEPARENT).iter();
    let valid = lines.next().is_some_and(|line| is_traceparent(line.as_bytes()));
    if valid && lines.next().is_none() {
        return;
    }
    let (trace, parent) = (rand::random::<u128>().max(1), rand::random::<u64>().max(1));
    let mut text = Vec::with_capacity(55);
    text.extend_from_slice(b"00-");
    push_hex(&mut text, &trace.to_be_bytes());
    text.push(b'-');
    push_hex(&mut text, &parent.to_be_bytes());
    text.extend_from_slice(b"-01");
    headers.insert(&TRACEPARENT, ascii(text));
    headers.remove(&TRACESTATE);
}

fn is_traceparent(value: &[u8]) -> bool {
    let hex = |part: &[u8]| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let some = |part: &[u8]| hex(part) && part.iter().any(|byte| *byte != b'0');
    if value.len() < 55 || [2, 35, 52].iter().any(|at| value[*at] != b'-') {
        return false;
    }
    let version = &value[..2];
    // A later version may say more behind a further dash; this one says nothing more.
    let length =
        if version == b"00" { value.len() == 55 } else { value.get(55).is_none_or(|b| *b == b'-') };
    length
        && hex(version)
        && version != b"ff"
        && some(&value[3..35])
        && some(&value[36..52])
        && hex(&value[53..55])
}

/// The request's id: the client's, where it sent exactly one that is short and made of letters,
/// digits and `-_.:+/=@`; else a random one of 32 hexadecimal digits.
#[must_use]
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    let mut lines = headers.get_all(&X_REQUEST_ID).iter();
    if let (Some(id), None) = (lines.next(), lines.next())
        && is_id(id.as_bytes())
    {
        return id.clone();
    }
    let mut text = Vec::with_capacity(32);
    push_hex(&mut text, &rand::random::<u128>().to_be_bytes());
    ascii(text)
}

fn is_id(value: &[u8]) -> bool {
    (1..=MAX_ID).contains(&value.len())
        && value.iter().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_' | b'.' | b':' | b'+' | b'/' | b'=' | b'@')
        })
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

fn ascii(text: Vec<u8>) -> HeaderValue {
    HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).expect("hexadecimal digits and dashes")
}

#[cfg(test)]
mod tests;
