//! The client's address: the one resolver for conditions, balancing and logs.
//!
//! Differs from ShenYu 2.7.1, which takes the left-most of several elements, the client's own word,
//! and ignores a single one. Here only what proxies we trust have written counts.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};

use crate::config::Cidr;

pub(super) static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

pub(super) fn is_trusted(trusted: &[Cidr], address: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// The right-most hop that is not one of our proxies.
///
/// `X-Forwarded-For` is read from its end, over all its lines, and only while the hop that wrote the
/// element is trusted. An element that is no address ends the reading: what lies before it was
/// vouched for by nobody. When every hop is trusted the left-most one counts. IPv4 in IPv6 form
/// becomes IPv4. Does not allocate.
pub(super) fn resolve(trusted: &[Cidr], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = peer.to_canonical();
    if !is_trusted(trusted, client) {
        return client;
    }
    for line in headers.get_all(&X_FORWARDED_FOR).iter().rev() {
        for element in line.as_bytes().rsplit(|byte| *byte == b',') {
            let element = element.trim_ascii();
            if element.is_empty() {
                continue;
            }
            let Some(hop) = parse(element) else { return client };
            client = hop;
            if !is_trusted(trusted, hop) {
                return client;
            }
        }
    }
    client
}

/// An address, with or without a port, brackets and quotes.
fn parse(element: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(element).ok()?;
    let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    let address = match text.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) => match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inside) => inside.parse().ok()?,
            None => text.parse::<SocketAddr>().ok()?.ip(),
        },
    };
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{X_FORWARDED_FOR, resolve};
    use crate::config::Cidr;

    fn client(trusted: &[&str], peer: &str, lines: &[&'static str]) -> String {
        let trusted: Vec<Cidr> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(&X_FORWARDED_FOR, HeaderValue::from_static(line));
        }
        resolve(&trusted, peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_right_most_untrusted_hop_counts() {
        let ours = &["10.0.0.0/8", "fd00::/8"][..];
        for (trusted, peer, lines, expected) in [
            // Nobody is trusted, or not this peer: the header is only the client's word.
            (&[][..], "203.0.113.9", &["1.1.1.1"][..], "203.0.113.9"),
            (ours, "203.0.113.9", &["1.1.1.1, 2.2.2.2"], "203.0.113.9"),
            (ours, "10.0.0.1", &[], "10.0.0.1"),
            (ours, "10.0.0.1", &[""], "10.0.0.1"),
            (ours, "10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            // The left-most is the client's own invention.
            (ours, "10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            (ours, "10.0.0.1", &["6.6.6.6,1.2.3.4,10.2.2.2"], "1.2.3.4"),
            (ours, "10.0.0.1", &["6.6.6.6, 1.2.3.4", "10.2.2.2", "10.3.3.3"], "1.2.3.4"),
            (ours, "10.0.0.1", &["6.6.6.6", "1.2.3.4"], "1.2.3.4"),
            (ours, "10.0.0.1", &["10.9.9.9, 10.2.2.2"], "10.9.9.9"),
            (ours, "10.0.0.1", &["6.6.6.6,, ,"], "6.6.6.6"),
            // Ports, IPv6, quotes, IPv4 in IPv6.
            (ours, "10.0.0.1", &["1.2.3.4:5678"], "1.2.3.4"),
            (ours, "10.0.0.1", &["[2001:db8::7]:443"], "2001:db8::7"),
            (ours, "10.0.0.1", &["[2001:db8::7]"], "2001:db8::7"),
            (ours, "10.0.0.1", &["2001:db8::7"], "2001:db8::7"),
            (ours, "10.0.0.1", &["\"[2001:db8::7]:1\""], "2001:db8::7"),
            (ours, "10.0.0.1", &["::ffff:1.2.3.4"], "1.2.3.4"),
            (ours, "::ffff:10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            (ours, "fd00::1", &["2001:db8::7, fd00::2"], "2001:db8::7"),
            // Garbage ends the reading at the hop that vouched for it.
            (ours, "10.0.0.1", &["1.2.3.4, unknown"], "10.0.0.1"),
            (ours, "10.0.0.1", &["1.2.3.4, _hidden, 10.2.2.2"], "10.2.2.2"),
            (ours, "10.0.0.1", &["1.2.3.4, 10.2.2.2:99999"], "10.0.0.1"),
            (ours, "10.0.0.1", &["fe80::1%eth0"], "10.0.0.1"),
            (&["0.0.0.0/0"], "9.9.9.9", &["5.5.5.5, 6.6.6.6"], "5.5.5.5"),
        ] {
            assert_eq!(client(trusted, peer, lines), expected, "{trusted:?} {peer} {lines:?}");
        }
    }
}
