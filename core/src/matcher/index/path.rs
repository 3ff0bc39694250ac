//! The path of a request as the index walks it.

use smallvec::SmallVec;

use super::hash;
use crate::matcher::{Planted, planted};

/// Segments past this number are not looked at.
pub(super) const DEPTH: usize = 16;

/// The segments of a path that are not empty.
#[derive(Debug)]
pub(super) struct Segments<'p> {
    path: &'p [u8],
    list: SmallVec<[Segment<'p>; DEPTH]>,
}

/// One segment, with its hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'p> {
    pub(super) bytes: &'p [u8],
    pub(super) hash: u64,
}

impl<'p> Segments<'p> {
    /// Splits at slashes; of a longer path the first `DEPTH` segments and one more.
    pub(super) fn of(path: &'p [u8]) -> Self {
        let segment = |bytes: &'p [u8]| Segment { bytes, hash: hash::of(bytes) };
        Self { path, list: split(path).take(DEPTH + 1).map(segment).collect() }
    }

    /// The whole path.
    pub(super) const fn path(&self) -> &'p [u8] {
        self.path
    }

    pub(super) fn list(&self) -> &[Segment<'p>] {
        &self.list
    }
}

/// The segments of `path` that are not empty.
pub(super) fn split(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|segment| !segment.is_empty() || planted(Planted::EmptySegmentsCount))
}

/// The path as `pathPattern` reads it, where that differs: segments decoded, `;parameters` cut off.
///
/// What no pattern can name (an escaped slash, a broken escape) becomes a byte that is in no text.
pub(super) fn decoded(path: &str) -> Option<Vec<u8>> {
    const NOTHING: u8 = 0xff;
    let bytes = path.as_bytes();
    if !bytes.iter().fold(false, |found, &b| found | (b == b'%') | (b == b';')) {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut cut = false;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'/' => {
                cut = false;
                out.push(b'/');
            }
            _ if cut => {}
            b';' => cut = true,
            b'%' => match crate::condition::escape_at(bytes, at - 1) {
                Some(decoded) => {
                    out.push(if decoded == b'/' { NOTHING } else { decoded });
                    at += 2;
                }
                None => out.push(NOTHING),
            },
            _ => out.push(byte),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{decoded, split};

    #[test]
    fn segments_and_their_decoded_form() {
        let list = |path: &str| split(path.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(list("//a/b//"), [b"a".to_vec(), b"b".to_vec()]);
        assert!(list("/").is_empty() && list("").is_empty());
        assert!(decoded("/a/b").is_none());
        for (path, form) in [
            ("/a%20b/c;v=1/d", &b"/a b/c/d"[..]),
            ("/a%2fb", b"/a\xffb"),
            ("/a%zz", b"/a\xffzz"),
            ("/a/;x=%41/b", b"/a//b"),
            ("/%c3%a9", "/\u{e9}".as_bytes()),
        ] {
            assert_eq!(decoded(path).as_deref(), Some(form), "{path}");
        }
    }
}
