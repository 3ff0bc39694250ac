//! How requests go on to upstreams.

use super::{Case, Verdict, upstream_header};
use crate::golden_gateway::compare::{Check, Difference};

/// The headers of one hop.
const HOPS: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn nothing(difference: &Difference) -> bool {
    difference.ours == "(none)"
}

/// The echo says what went out, so it differs where that does.
fn echoed(case: &Case<'_>, difference: &Difference) -> bool {
    let body = matches!(&difference.check, Check::Body)
        || matches!(&difference.check, Check::Header(name) if name == "content-length");
    difference.check == Check::Line || (body && case.our_body_starts("{\"name\""))
}

fn our_target(case: &Case<'_>) -> String {
    let line = case.ours.upstream.first().map(|(_, request)| request.line()).unwrap_or_default();
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn recorded_target(case: &Case<'_>) -> String {
    let head = case.exchange.upstream.first().map(|seen| seen.head.clone()).unwrap_or_default();
    String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned()
}

fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

pub(super) static ALL: &[Verdict] = &[
    Verdict::on_purpose(
        "`User-Agent` and `Accept` are not invented",
        "design.md 5.1, list below the switch",
        "only the client's are passed on",
        |_, difference| {
            upstream_header(difference, &["user-agent", "accept"]) && nothing(difference)
        },
    )
    .everywhere(),
    Verdict::on_purpose(
        "connections to upstreams are kept",
        "design.md 5.1, row upstream keep-alive; gateway-core.md 5.3 [F]",
        "no `Connection: close` unless `keepAlive: false`; what the client says of its own connection does not count",
        |case, difference| {
            upstream_header(difference, &["connection"])
                && nothing(difference)
                && difference.recorded == "close"
                && !case.file.starts_with("keepalive-false")
        },
    )
    .everywhere(),
    Verdict::on_purpose(
        "a connection serves the next request",
        "design.md 5.1, row upstream keep-alive; gateway-core.md 5.3 [F]",
        "whatever the client says of its own; `keepAlive: false` opens one for each request, whatever the client says",
        |case, difference| {
            difference.check == Check::Connection && !case.is("GK-05")
                && (difference.ours == "new") == (case.file == "keepalive-false")
        },
    ),
    Verdict::on_purpose(
        "requests without a body stay without",
        "design.md 5.1, row request without a body",
        "the reference sends an empty chunked body, or by `webClient` a length of 0",
        |case, difference| {
            !case.has_body()
                && (upstream_header(difference, &["transfer-encoding", "content-length"])
                    || difference.check == Check::UpstreamBody)
                && (nothing(difference) || difference.ours.is_empty())
        },
    ),
    Verdict::on_purpose(
        "the body of GET and HEAD is dropped whole",
        "design.md 5.1, row body of GET / HEAD",
        "its `Content-Length` or chunks with it; the reference forwards these headers without a body, and waits",
        |case, _| matches!(case.method().as_str(), "GET" | "HEAD") && case.has_body(),
    ),
    Verdict::on_purpose(
        "headers of one hop are dropped",
        "design.md 6, HTTP/1.1 framing; gateway-core.md 5.3 [F]",
        "`Connection` and what it names, `Keep-Alive`, `Proxy-*`, `TE` but trailers, `Upgrade`",
        |case, difference| {
            let named = case.sent("connection").join(",").to_ascii_lowercase();
            let hop = |name: &str| {
                HOPS.contains(&name) || named.split(',').any(|word| word.trim() == name)
            };
            let ours = nothing(difference) || (case.file == "keepalive-false" && difference.ours == "close");
            ours && matches!(&difference.check, Check::UpstreamHeader(name) if hop(name))
        },
    ),
    Verdict::on_purpose(
        "`webClient` joins bodies and doubles headers",
        "gateway-core.md 5.5",
        "one behaviour by both clients: chunked bodies stay chunked, repeated headers are sent once",
        |case, difference| {
            case.file.starts_with("webclient")
                && (upstream_header(difference, &["content-length", "transfer-encoding", "x-dup"])
                    || difference.check == Check::UpstreamBody)
        },
    ),
    Verdict::on_purpose(
        "trailers of requests are passed on",
        "RFC 9110, 6.5.1",
        "those that `Trailer` announces; the reference drops them",
        |case, difference| {
            difference.check == Check::UpstreamBody && !case.sent("trailer").is_empty()
        },
    ),
    Verdict::on_purpose(
        "slashes are not folded",
        "gateway-core.md 5.2, [F]",
        "`//` is sent as it was matched",
        |case, difference| {
            let (ours, recorded) = (our_target(case), recorded_target(case));
            let ours = split(&ours);
            let mut folded = ours.0.to_owned();
            while folded.contains("//") {
                folded = folded.replace("//", "/");
            }
            ours.0.contains("//") && folded == split(&recorded).0 && echoed(case, difference)
        },
    ),
    Verdict::on_purpose(
        "the query is untouched",
        "design.md 5.1, row query",
        "the reference decodes and encodes it again where anything is escaped",
        |case, difference| {
            let (ours, recorded) = (our_target(case), recorded_target(case));
            let (ours, recorded) = (split(&ours), split(&recorded));
            ours.1.map(str::to_owned) == case.query()
                && ours.1 != recorded.1
                && ours.0 == recorded.0
                && echoed(case, difference)
        },
    ),
    Verdict::on_purpose(
        "bytes beyond ASCII stay as they are",
        "design.md 6, Paths: forwarded as it came",
        "the reference reads them as Latin-1 and escapes that as UTF-8",
        |case, difference| case.note().starts_with("raw UTF-8") && echoed(case, difference),
    ),
    Verdict::on_purpose(
        "a broken body ends the upstream call",
        "design.md 6, HTTP/1.1 framing",
        "the upstream never sees a complete request; the reference ends the body as if it were whole",
        |case, difference| {
            let broken = ["bad chunk size", "good chunk, pause, bad chunk", "3 of 10 bytes, then nothing more for 6 s"];
            let complete = case.ours.upstream.iter().any(|(_, request)| request.complete);
            !complete
                && broken.contains(&case.note())
                && matches!(difference.check, Check::UpstreamBody | Check::Requests)
        },
    ),
    Verdict::on_purpose(
        "the `Origin` of a websocket is not invented",
        "design.md 5.1, list below the switch",
        "only the client's is passed on",
        |case, difference| {
            case.exchange.websocket.is_some() && upstream_header(difference, &["origin"]) && nothing(difference)
        },
    ),
    Verdict::on_purpose(
        "pings of websockets pass through",
        "gateway-core.md 6.1, enableProxyPing",
        "the other side answers them, not the gateway",
        |case, difference| {
            case.note() == "PING from the client" && difference.check == Check::UpstreamBody
        },
    ),
    Verdict::on_purpose(
        "websocket frames over 64 KiB pass",
        "design.md 5.1, list below the switch",
        "the reference cuts the connection",
        |case, _| case.note() == "65537 characters from the client",
    ),
];
