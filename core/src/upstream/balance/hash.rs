//! Consistent choice by client address.
//!
//! Source: ShenYu 2.7.1, hash, vectors in the tests.

use std::net::IpAddr;

use md5::{Digest, Md5};

/// Points of all members, sorted.
#[derive(Debug, Default)]
pub(super) struct Ring(Vec<(u32, u16)>);

impl Ring {
    const POINTS: usize = 5;

    pub(super) fn build<'a>(urls: impl Iterator<Item = &'a str>) -> Self {
        let mut points = Vec::new();
        for (index, url) in urls.enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            for point in 0..Self::POINTS {
                points.push((hash(&format!("SHENYU-{url}-HASH-{point}")), index));
            }
        }
        points.sort_unstable();
        Self(points)
    }

    /// The member of the first point at or after the client's, going round, that may be chosen: the
    /// clients of one that is out are spread, the others stay where they are.
    pub(super) fn choose(&self, peer: IpAddr, may: impl Fn(usize) -> bool) -> Option<usize> {
        let key = hash(&peer_text(peer));
        let at = self.0.partition_point(|(point, _)| *point < key);
        let (before, after) = self.0.split_at(at);
        let mut points = after.iter().chain(before).map(|(_, index)| usize::from(*index));
        points.find(|index| may(*index))
    }
}

/// The first four bytes of the MD5 digest, little endian.
fn hash(text: &str) -> u32 {
    let digest = Md5::digest(text.as_bytes());
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// The address as the reference's runtime prints it: IPv6 in full groups without leading zeros.
fn peer_text(peer: IpAddr) -> String {
    match peer {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4_mapped() {
                return v4.to_string();
            }
            let groups: Vec<String> = v6.segments().iter().map(|g| format!("{g:x}")).collect();
            groups.join(":")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Ring, hash};

    #[test]
    fn vectors_of_the_reference() {
        assert_eq!(hash("SHENYU-127.0.0.1:8001-HASH-0"), 1_394_271_004);
        let urls = ["127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"];
        let ring = Ring::build(urls.into_iter());
        for (peer, expected) in [
            ("127.0.0.1", 2),
            ("10.0.0.1", 2),
            ("10.0.0.2", 0),
            ("10.0.0.3", 2),
            ("192.168.1.7", 2),
            ("::1", 0),
        ] {
            let chosen = ring.choose(peer.parse().unwrap(), |_| true);
            assert_eq!(chosen, Some(expected), "{peer}");
        }
    }

    #[test]
    fn only_the_clients_of_the_one_that_is_out_move() {
        let ring = Ring::build(["a:1", "b:1", "c:1", "d:1"].into_iter());
        for host in 0..=255 {
            let peer = IpAddr::from([10, 0, 0, host]);
            let before = ring.choose(peer, |_| true);
            let after = ring.choose(peer, |index| index != 2);
            assert!(after != Some(2) && after.is_some());
            assert!(before == Some(2) || before == after);
        }
        assert_eq!(ring.choose(IpAddr::from([10, 0, 0, 1]), |_| false), None);
    }
}
