//! Addresses of upstreams, read once.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;

use crate::model::Upstream;

/// The scheme of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain HTTP, also for `ws://` and where the protocol is absent.
    Http,
    /// HTTP over TLS, also for `wss://`.
    Https,
}

impl Scheme {
    /// The port that is left out of `Host`.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Why an upstream's address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value:?} is not {expected}")]
pub struct AddressFault {
    /// `protocol` or `url`.
    pub field: &'static str,
    /// The value found.
    pub value: String,
    /// What was expected.
    pub expected: &'static str,
}

/// Scheme, host and port of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The scheme.
    pub scheme: Scheme,
    /// Name or IP literal, lower case, without brackets.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
    /// The socket address, when the host is an IP literal.
    pub ip: Option<SocketAddr>,
}

impl Address {
    /// Reads protocol and url of an upstream.
    ///
    /// The protocol may be absent, `http://`, `https://`, `ws://` or `wss://` (also without the
    /// separator); the url is `host:port`, `host`, `[v6]:port`, and may carry a scheme of its own.
    ///
    /// # Errors
    /// An unknown protocol, an empty host, a port out of range.
    pub fn read(upstream: &Upstream) -> Result<Self, AddressFault> {
        let protocol = upstream.protocol.as_deref().unwrap_or_default().trim();
        let url = upstream.url.trim();
        let (inner, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, url),
        };
        let scheme = match inner.unwrap_or_else(|| protocol.trim_end_matches("://")) {
            "" | "http" | "ws" => Scheme::Http,
            "https" | "wss" => Scheme::Https,
            _ => {
                return Err(AddressFault {
                    field: "protocol",
                    value: protocol.to_owned(),
                    expected: "http://, https://, ws:// or wss://",
                });
            }
        };
        let fault = || AddressFault {
            field: "url",
            value: upstream.url.clone(),
            expected: "host:port, with a port between 1 and 65535",
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = split_port(authority).ok_or_else(fault)?;
        let port = match port {
            None => scheme.default_port(),
            Some(text) => text.parse().ok().filter(|port| *port != 0).ok_or_else(fault)?,
        };
        let legal = !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'@' | b'\\' | b','));
        if !legal {
            return Err(fault());
        }
        let ip = host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port));
        if host.contains(':') && ip.is_none() {
            return Err(fault());
        }
        Ok(Self { scheme, host: host.to_ascii_lowercase().into(), port, ip })
    }

    /// The value of `Host`: with the port unless it is the scheme's own.
    ///
    /// # Errors
    /// Never for an address that [`Address::read`] returned; the host was checked there.
    pub(super) fn host_header(&self) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
        let bracketed = self.host.contains(':');
        let host = if bracketed { format!("[{}]", self.host) } else { self.host.to_string() };
        if self.port == self.scheme.default_port() {
            HeaderValue::from_str(&host)
        } else {
            HeaderValue::from_str(&format!("{host}:{}", self.port))
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.scheme.text(), self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.scheme.text(), self.host, self.port)
        }
    }
}

/// Splits `host:port`, `[v6]:port`, `host`, or a bare v6 literal.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None if after.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match authority.rsplit_once(':') {
        Some((host, _)) if host.contains(':') => Some((authority, None)),
        Some((host, port)) => Some((host, Some(port))),
        None => Some((authority, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Scheme};
    use crate::model::Upstream;

    fn read(protocol: &str, url: &str) -> Result<String, String> {
        let upstream =
            Upstream { protocol: Some(protocol.into()), url: url.into(), ..Upstream::default() };
        Address::read(&upstream).map(|a| a.to_string()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn addresses_of_all_spellings() {
        for (protocol, url, expected) in [
            ("http://", "10.0.0.1:8080", "http://10.0.0.1:8080"),
            ("", "Example.test", "http://example.test:80"),
            ("https://", "example.test", "https://example.test:443"),
            ("ws://", " 127.0.0.1:9001 ", "http://127.0.0.1:9001"),
            ("http://", "[::1]:8080", "http://[::1]:8080"),
            ("", "https://example.test:8443/x", "https://example.test:8443"),
        ] {
            assert_eq!(read(protocol, url).as_deref(), Ok(expected), "{protocol} {url}");
        }
        for (protocol, url) in
            [("tcp://", "h:1"), ("", ""), ("", "h:0"), ("", "h:70000"), ("", "h:x"), ("", "a@b:1")]
        {
            assert!(read(protocol, url).is_err(), "{protocol} {url}");
        }
    }

    #[test]
    fn host_leaves_out_the_port_of_the_scheme() {
        let header = |url: &str| {
            let upstream = Upstream { url: url.into(), ..Upstream::default() };
            let address = Address::read(&upstream).unwrap();
            assert_eq!(address.scheme, Scheme::Http);
            address.host_header().unwrap()
        };
        assert_eq!(header("h:80"), "h");
        assert_eq!(header("h:8080"), "h:8080");
        assert_eq!(header("[::1]:8080"), "[::1]:8080");
    }
}
