//! What the upstreams of the recordings answered, where it was more than the echo.

use longmen_benchmark::raw::{Received, Reply, Then, header_values};

use super::record::Exchange;

/// The answer of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Script {
    /// JSON that says what came.
    Echo,
    /// These bytes.
    Bytes(Vec<u8>, Then),
    /// Nothing, and the connection stays open.
    Silent,
    /// The `Connection` header that came, and a short body.
    EchoConnection,
}

/// By record, or by the beginning of its id up to a blank.
const BY_RECORD: &[(&str, &str, Answer)] = &[
    (
        "GC-07",
        "",
        Answer::Keep("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"),
    ),
    ("GC-07", "odd status", Answer::Keep("HTTP/1.1 799 Odd\r\nContent-Length: 3\r\n\r\nodd")),
    ("GC-34", "", Answer::Silent),
    ("GC-34b", "", Answer::Silent),
    ("GC-34c", "", Answer::Silent),
    ("GC-34d", "", Answer::Silent),
    ("GC-34e", "", Answer::Silent),
    ("GC-34f", "", Answer::Silent),
    ("GC-36b", "", Answer::Close("")),
    (
        "GC-39",
        "upstream sets its own",
        Answer::Keep(
            "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: GET\r\nContent-Length: 1\r\n\r\nx",
        ),
    ),
    ("GE-04", "", Answer::Echo),
    ("GE-07", "204", Answer::Keep("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n")),
    ("GE-07", "304", Answer::Keep("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")),
    (
        "GE-07",
        "304 with length",
        Answer::Keep("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ),
    (
        "GE-07",
        "no length, close",
        Answer::Close("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil close"),
    ),
    (
        "GE-07",
        "chunked",
        Answer::Keep(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
    ),
    (
        "GE-07",
        "gzip label",
        Answer::Keep("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"),
    ),
    (
        "GE-07",
        "lower-case names",
        Answer::Keep("HTTP/1.1 200 OK\r\nx-lower: 1\r\nX-UPPER: 2\r\ncontent-length: 2\r\n\r\nhi"),
    ),
    (
        "GE-07",
        "hop-by-hop",
        Answer::Keep(
            "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=3\r\nProxy-Authenticate: x\r\nContent-Length: 2\r\n\r\nhi",
        ),
    ),
    (
        "GE-07",
        "Connection close",
        Answer::Close("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"),
    ),
    (
        "GE-07",
        "Connection keep-alive",
        Answer::Keep("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi"),
    ),
    (
        "GE-07",
        "Server and Date",
        Answer::Keep(
            "HTTP/1.1 200 OK\r\nServer: up/1\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nhi",
        ),
    ),
    (
        "GE-07",
        "301 Location",
        Answer::Keep(
            "HTTP/1.1 301 Moved Permanently\r\nLocation: http://U1/x\r\nContent-Length: 0\r\n\r\n",
        ),
    ),
    (
        "GE-07",
        "100 then 200",
        Answer::Keep("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    ),
    (
        "GE-07",
        "103 then 200",
        Answer::Keep(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        ),
    ),
    ("GE-07", "bad status line", Answer::Close("HELLO WORLD\r\n\r\n")),
    ("GE-07", "empty answer", Answer::Close("")),
    ("GE-07", "short body", Answer::Close("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")),
    (
        "GE-07",
        "trailers",
        Answer::Keep(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n",
        ),
    ),
    ("GE-07", "HTTP/1.0", Answer::Close("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")),
    ("GE-07", "header 9000", Answer::BigHeader),
    ("GE-07", "HEAD", Answer::Keep("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\n")),
    ("GK-04", "", Answer::EchoConnection),
    ("GK-05", "", Answer::Close("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")),
];

/// [`Script`] as a constant.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Keep(&'static str),
    Close(&'static str),
    Echo,
    Silent,
    EchoConnection,
    BigHeader,
}

/// What the upstreams answer to an exchange.
///
/// A recording that this table does not know is read backwards: what the client got is what the
/// upstream sent, where it is no answer of the gateway itself.
pub(crate) fn script(record: &str, exchange: &Exchange) -> Script {
    let short = record.split(' ').next().unwrap_or_default();
    let exact = |wanted: &str| {
        BY_RECORD.iter().find(|(id, note, _)| *id == short && *note == wanted).map(|found| found.2)
    };
    match exact(&exchange.note).or_else(|| exact("")) {
        Some(Answer::Keep(text)) => Script::Bytes(text.into(), Then::Keep),
        Some(Answer::Close(text)) => Script::Bytes(text.into(), Then::Close),
        Some(Answer::Echo) => Script::Echo,
        Some(Answer::Silent) => Script::Silent,
        Some(Answer::EchoConnection) => Script::EchoConnection,
        Some(Answer::BigHeader) => Script::Bytes(
            format!(
                "HTTP/1.1 200 OK\r\nX-Big: {}\r\nContent-Length: 2\r\n\r\nhi",
                "v".repeat(9000)
            )
            .into(),
            Then::Keep,
        ),
        None => read_backwards(exchange),
    }
}

fn read_backwards(exchange: &Exchange) -> Script {
    let got = &exchange.got;
    let echoed = got.body.starts_with(b"{\"name\"") || got.raw.is_some() || exchange.is_head();
    let enveloped = got.body.starts_with(b"{\"code\":");
    match got.status {
        _ if exchange.upstream.is_empty() || echoed => Script::Echo,
        408 | 503 | 504 if enveloped => Script::Silent,
        400..=599 if enveloped => Script::Bytes(Vec::new(), Then::Close),
        // The gateway refused it while the upstream was reading.
        400 if got.body.is_empty() => Script::Echo,
        _ => {
            let mut bytes = got.head.clone();
            bytes.extend_from_slice(b"\r\n\r\n");
            bytes.extend_from_slice(&got.body);
            Script::Bytes(bytes, Then::Close)
        }
    }
}

impl Script {
    /// The answer of the upstream with this name and address.
    pub(crate) fn reply(&self, name: &str, address: &str, request: &Received) -> Reply {
        let close = header_values(&request.head)
            .iter()
            .any(|(name, value)| name == "connection" && value.eq_ignore_ascii_case(b"close"));
        let then = if close { Then::Close } else { Then::Keep };
        match self {
            Self::Echo => Reply { bytes: echo(name, request), then },
            Self::Bytes(bytes, then) => {
                let bytes =
                    super::stage::replace(bytes, b"U1/x", format!("{address}/x").as_bytes());
                Reply { bytes, then: *then }
            }
            Self::Silent => Reply { bytes: Vec::new(), then: Then::Hold },
            Self::EchoConnection => {
                let values: Vec<String> = header_values(&request.head)
                    .into_iter()
                    .filter(|(name, _)| name == "connection")
                    .map(|(_, v)| format!("Connection: {}\r\n", String::from_utf8_lossy(&v)))
                    .collect();
                let bytes =
                    format!("HTTP/1.1 200 OK\r\n{}Content-Length: 1\r\n\r\nx", values.concat());
                Reply { bytes: bytes.into(), then }
            }
        }
    }
}

/// The echo of the recorded upstreams: JSON with their member order and blanks.
pub(crate) fn echo(name: &str, request: &Received) -> Vec<u8> {
    let line = request.line();
    let mut words = line.splitn(2, ' ');
    let method = words.next().unwrap_or_default();
    let target =
        words.next().and_then(|rest| rest.rsplit_once(' ')).map_or("", |(target, _)| target);
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let body = format!(
        "{{\"name\": {}, \"method\": {}, \"target\": {}, \"body\": {}}}",
        quoted(name),
        quoted(method),
        quoted(target),
        quoted(&String::from_utf8_lossy(&request.body())),
    );
    let sent = if method == "HEAD" { "" } else { body.as_str() };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{sent}",
        body.len()
    )
    .into_bytes()
}
