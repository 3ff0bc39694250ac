//! What both sides need to know of a message: where it ends.

use std::ops::Range;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// By its length in bytes.
    Length(usize),
    /// By chunks.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// The place right behind the empty line that ends a head, if it is there.
pub(super) fn head_end(bytes: &[u8]) -> Option<usize> {
    let crlf = find(bytes, b"\r\n\r\n").map(|at| at + 4);
    // Only in front of it, so that a long body is not searched again and again.
    let lf = find(&bytes[..crlf.unwrap_or(bytes.len())], b"\n\n").map(|at| at + 2);
    lf.or(crlf)
}

/// The lines of a head without their ends: the start line first, no empty ones.
pub fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}

/// The headers of a head: names in lower case, values without blanks around them, in order.
#[must_use]
pub fn header_values(head: &[u8]) -> Vec<(String, Vec<u8>)> {
    head_lines(head)
        .skip(1)
        .map(|line| {
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
            (String::from_utf8_lossy(name).to_ascii_lowercase(), value.to_vec())
        })
        .collect()
}

/// How a head says its body ends; `otherwise` where it says nothing.
pub(super) fn framing(head: &[u8], otherwise: Framing) -> Framing {
    let headers = header_values(head);
    let named = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, v)| v);
    if named("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"))
    {
        return Framing::Chunked;
    }
    let length = named("content-length")
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|value| value.parse().ok());
    length.map_or(otherwise, Framing::Length)
}

/// How far a chunked body goes.
pub(super) enum ChunkedEnd {
    /// Its last byte is before this place.
    At(usize),
    /// More must come.
    Open,
    /// It is no chunked body.
    Broken,
}

pub(super) fn chunked_end(bytes: &[u8]) -> ChunkedEnd {
    let mut at = 0;
    loop {
        match chunk(&bytes[at..]) {
            Chunk::Data { next, .. } => at += next,
            Chunk::Last { next } => return ChunkedEnd::At(at + next),
            Chunk::Open => return ChunkedEnd::Open,
            Chunk::Broken => return ChunkedEnd::Broken,
        }
    }
}

/// The data of a chunked body, as far as it goes.
#[must_use]
pub fn decode_chunked(bytes: &[u8]) -> Vec<u8> {
    let (mut at, mut out) = (0, Vec::new());
    while let Chunk::Data { data, next } = chunk(&bytes[at..]) {
        out.extend_from_slice(&bytes[at..][data]);
        at += next;
    }
    out
}

enum Chunk {
    Data { data: Range<usize>, next: usize },
    Last { next: usize },
    Open,
    Broken,
}

fn chunk(bytes: &[u8]) -> Chunk {
    let Some(line) = find(bytes, b"\r\n") else { return Chunk::Open };
    let digits = bytes[..line].split(|byte| *byte == b';').next().unwrap_or_default();
    let size = std::str::from_utf8(digits.trim_ascii())
        .ok()
        .and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let data = line + 2;
    match size {
        None => Chunk::Broken,
        // Trailers, if any, end with an empty line.
        Some(0) if bytes[data..].starts_with(b"\r\n") => Chunk::Last { next: data + 2 },
        Some(0) => match find(&bytes[data..], b"\r\n\r\n") {
            Some(end) => Chunk::Last { next: data + end + 4 },
            None => Chunk::Open,
        },
        Some(size) => match data.checked_add(size) {
            Some(end) if bytes.len() >= end + 2 => Chunk::Data { data: data..end, next: end + 2 },
            Some(_) => Chunk::Open,
            None => Chunk::Broken,
        },
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::{ChunkedEnd, Framing, chunked_end, decode_chunked, framing, head_end};

    #[test]
    fn ends_are_found() {
        assert_eq!(head_end(b"GET / HTTP/1.1\r\nA: b\r\n\r\nbody"), Some(24));
        assert_eq!(head_end(b"GET / HTTP/1.1\nA: b\n\nbody"), Some(21));
        assert_eq!(head_end(b"GET / HTTP/1.1\r\nA: b\r\n"), None);
        let framed = |head: &[u8]| framing(head, Framing::None);
        assert_eq!(framed(b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n"), Framing::Length(3));
        assert_eq!(
            framed(b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"),
            Framing::Chunked
        );
        assert_eq!(framed(b"GET / HTTP/1.1\r\n\r\n"), Framing::None);
    }

    #[test]
    fn chunks_are_read() {
        let whole = b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nX: 1\r\n\r\nrest";
        assert!(matches!(chunked_end(whole), ChunkedEnd::At(at) if &whole[at..] == b"rest"));
        assert_eq!(decode_chunked(whole), b"abcde");
        assert!(matches!(chunked_end(b"3\r\nab"), ChunkedEnd::Open));
        assert!(matches!(chunked_end(b"zz\r\nab"), ChunkedEnd::Broken));
        assert!(matches!(chunked_end(b"ffffffffffffffff\r\nab"), ChunkedEnd::Broken));
    }
}
