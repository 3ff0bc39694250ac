//! Headers that belong to one connection and never travel further.

use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, TE,
    TRANSFER_ENCODING, UPGRADE,
};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
static PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
static PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");

/// What `Connection` cannot take away: framing and routing, and what proxies in front have said about
/// the client, which the gateway decides by.
const NOT_TO_NAME: [&str; 9] = [
    "te",
    "host",
    "content-length",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "via",
    "x-request-id",
    "traceparent",
];

/// Removes hop-by-hop headers: `Connection` and what it names, `Keep-Alive`, `TE` (but
/// `trailers`), `Upgrade`, `Proxy-*`, `Transfer-Encoding`, and a `Content-Length` beside the last,
/// which says nothing about the body (RFC 9112, section 6.3).
///
/// Source: RFC 9110, section 7.6.1. The reference passes them on.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            if !NOT_TO_NAME.contains(&name.as_str()) {
                headers.remove(name);
            }
        }
        headers.remove(CONNECTION);
    }
    if headers.remove(TRANSFER_ENCODING).is_some() {
        headers.remove(CONTENT_LENGTH);
    }
    for name in
        [&KEEP_ALIVE, &UPGRADE, &PROXY_CONNECTION, &PROXY_AUTHENTICATE, &PROXY_AUTHORIZATION]
    {
        headers.remove(name);
    }
    if let Some(te) = headers.remove(TE) {
        let trailers = te
            .to_str()
            .is_ok_and(|te| te.split(',').any(|word| word.trim().eq_ignore_ascii_case("trailers")));
        if trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
}

/// Whether a request has a body of unknown length that its method hides: the HTTP/1 client would
/// send GET and HEAD without it.
pub fn hides_body<B: http_body::Body>(request: &http::Request<B>) -> bool {
    let method = request.method();
    (*method == http::Method::GET || *method == http::Method::HEAD)
        && !request.body().is_end_stream()
        && request.body().size_hint().exact().is_none()
        && !request.headers().contains_key(CONTENT_LENGTH)
}

/// Says of a hidden body that it comes in chunks. Not for HTTP/2, which has no such header.
pub fn announce_body<B: http_body::Body>(request: &mut http::Request<B>) {
    if hides_body(request) {
        request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Joins several `Cookie` lines into one, as a request that came by HTTP/2 must be before it goes on
/// by HTTP/1.1.
///
/// Source: RFC 9113, section 8.2.3.
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let lines: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

/// Whether the content type is one whose chunks must leave as they come.
#[must_use]
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
            || essence.eq_ignore_ascii_case("application/x-ndjson")
    })
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderMap, HeaderValue};

    use super::{join_cookies, strip_hop_by_hop};

    #[test]
    fn cookies_of_several_lines_become_one() {
        let mut headers = HeaderMap::new();
        join_cookies(&mut headers);
        assert!(headers.is_empty());
        for cookie in ["a=1", "b=2; c=3"] {
            headers.append("cookie", HeaderValue::from_static(cookie));
        }
        join_cookies(&mut headers);
        let lines: Vec<_> = headers.get_all("cookie").iter().collect();
        assert_eq!(lines, ["a=1; b=2; c=3"]);
    }

    #[test]
    fn only_end_to_end_headers_are_left() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Mine, Host"),
            ("keep-alive", "timeout=5"),
            ("x-mine", "1"),
            ("te", "gzip, trailers"),
            ("upgrade", "foo"),
            ("proxy-authorization", "x"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("host", "h"),
            ("x-other", "2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        let mut left: Vec<_> =
            headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        left.sort_unstable();
        assert_eq!(left, [("host", "h"), ("te", "trailers"), ("x-other", "2")]);
    }
}
