//! What a request head must look like before anything else is asked.
//!
//! The server refuses most ambiguous heads itself; this is the rest that a service can see. What the
//! server rewrites before its service sees it (Content-Length beside chunked, equal repeated
//! Content-Length) is safe by that rewriting: nothing ambiguous is passed on.

use http::header::{CONNECTION, HOST, HeaderMap, TRANSFER_ENCODING};
use http::{Method, Request, Uri, Version};

use super::{Admission, Admitted};
use crate::chain::Inbound;
use crate::error::{GatewayError, Reason};

/// Refuses with 400 and closes: no `Host` in HTTP/1.1, two `Host` lines, one whose port is no
/// number, a `Host` unlike the authority of an absolute-form target, a target in the form of
/// `CONNECT`, a transfer coding other than `chunked`, `CONNECT`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Framing;

impl Admission for Framing {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        match check(request.method(), request.uri(), request.version(), request.headers()) {
            Ok(()) => Admitted::Pass,
            Err(text) => Admitted::Refuse(GatewayError::bad_request(Reason::BadRequest, text)),
        }
    }
}

fn check(
    method: &Method,
    uri: &Uri,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), &'static str> {
    if *method == Method::CONNECT {
        return Err("CONNECT is not served");
    }
    // The form of CONNECT, `host:port`: there is no path that anybody could mean by it.
    if version <= Version::HTTP_11 && uri.scheme().is_none() && uri.authority().is_some() {
        return Err("the target is no path");
    }
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("more than one Host header");
    }
    if host.is_none() && version == Version::HTTP_11 {
        return Err("no Host header");
    }
    let host = host.map(http::HeaderValue::as_bytes);
    if host.is_some_and(|host| !has_port_or_none(host)) {
        return Err("the port of the Host header is no number");
    }
    if let (Some(authority), Some(host)) = (uri.authority(), host) {
        let same = without_default_port(authority.as_str().as_bytes())
            .eq_ignore_ascii_case(without_default_port(host));
        if !same {
            return Err("the Host header differs from the target's authority");
        }
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err("a transfer coding other than chunked");
        }
        if version < Version::HTTP_11 {
            return Err("a transfer coding in HTTP/1.0");
        }
    }
    let hops = headers.get_all(CONNECTION);
    let names_framing = |value: &http::HeaderValue| {
        value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(|name| {
            name.eq_ignore_ascii_case(b"content-length")
                || name.eq_ignore_ascii_case(b"transfer-encoding")
                || name.eq_ignore_ascii_case(b"host")
        })
    };
    if hops.iter().any(names_framing) {
        return Err("the Connection header names a header that frames the request");
    }
    Ok(())
}

/// Whether what stands behind the last colon, but for those of a bracketed address, is a number or
/// nothing.
fn has_port_or_none(host: &[u8]) -> bool {
    let name_end = host.iter().rposition(|byte| *byte == b']').unwrap_or(0);
    match host[name_end..].iter().rposition(|byte| *byte == b':') {
        None => true,
        Some(colon) => host[name_end..][colon + 1..].iter().all(u8::is_ascii_digit),
    }
}

fn without_default_port(authority: &[u8]) -> &[u8] {
    authority.strip_suffix(b":80").unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};

    use super::check;

    fn verdict(uri: &str, version: Version, headers: &[(&'static str, &'static str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        check(&Method::GET, &uri.parse::<Uri>().unwrap(), version, &map).is_ok()
    }

    #[test]
    fn heads_that_two_readers_could_read_differently_are_refused() {
        let v11 = Version::HTTP_11;
        assert!(verdict("/a", v11, &[("host", "h")]));
        assert!(verdict("/a", Version::HTTP_10, &[]));
        for host in ["h:80", "h:", "[::1]", "[::1]:80", ""] {
            assert!(verdict("/a", v11, &[("host", host)]), "{host}");
        }
        assert!(!verdict("h", v11, &[("host", "h")]));
        assert!(!verdict("h:80", v11, &[("host", "h:80")]));
        assert!(verdict("http://H:80/a", v11, &[("host", "h")]));
        assert!(verdict("/a", v11, &[("host", "h"), ("transfer-encoding", "Chunked")]));
        for bad in [
            &[][..],
            &[("host", "a"), ("host", "a")],
            &[("host", "h"), ("transfer-encoding", "gzip, chunked")],
            &[("host", "h"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            &[("host", "h"), ("connection", "close, Content-Length")],
            &[("host", "h:x")],
            &[("host", "[::1]:8x")],
        ] {
            assert!(!verdict("/a", v11, bad), "{bad:?}");
        }
        assert!(!verdict("http://other/a", v11, &[("host", "h")]));
        assert!(!verdict("http://other/a", Version::HTTP_2, &[("host", "h")]));
        assert!(verdict("http://other/a", Version::HTTP_2, &[]));
        assert!(verdict("/a", v11, &[("host", "[::1]:9195")]));
        assert!(!verdict("/a", Version::HTTP_10, &[("transfer-encoding", "chunked")]));
    }
}
