//! Raw paths: what is refused before any routing, and the canonical form guards look at.

use super::text::escape_at;

/// Why a raw path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// A segment that is `.` or `..`, however it is spelled.
    #[error("path has a dot segment at byte {0}, expected a path that is resolved already")]
    DotSegment(usize),
    /// A backslash, raw or escaped.
    #[error("path has a backslash at byte {0}, expected slashes only")]
    Backslash(usize),
    /// An escaped NUL.
    #[error("path has an escaped NUL at byte {0}, expected none")]
    Nul(usize),
    /// A raw control character.
    #[error("path has a control character at byte {0}, expected it to be escaped")]
    Control(usize),
    /// A `%` without two hexadecimal digits.
    #[error("path has an invalid escape at byte {0}, expected % and two hexadecimal digits")]
    BadEscape(usize),
}

/// Checks a raw path (without query) before it is routed.
///
/// Dot segments are found in every spelling: escaped dots and slashes, with `;parameters` after
/// the dots, and the overlong UTF-8 forms of dot, slash and backslash that lax decoders accept.
/// One walk, no allocation.
///
/// # Errors
/// The first fault from the left.
pub fn check_path(raw: &str) -> Result<(), PathFault> {
    if is_ordinary(raw.as_bytes()) {
        return Ok(());
    }
    let bytes = raw.as_bytes();
    let mut at = 0;
    let mut segment = SegmentDots::default();
    while at < bytes.len() {
        let (byte, width) = match bytes[at] {
            b'%' => escaped(bytes, at)?,
            raw if raw < b' ' || raw == 0x7f => return Err(PathFault::Control(at)),
            raw => (raw, 1),
        };
        match byte {
            b'\\' => return Err(PathFault::Backslash(at)),
            0 if width > 1 => return Err(PathFault::Nul(at)),
            b'/' => {
                segment.end()?;
                segment = SegmentDots { from: at + width, ..SegmentDots::default() };
            }
            b'.' => segment.dot(),
            b';' => segment.parameters(),
            _ => segment.other(),
        }
        at += width;
    }
    segment.end()
}

/// Whether a look at the bytes is enough to let the path pass: no escape, nothing forbidden, no
/// segment that begins with a dot. Written without early exits so that it compiles to wide
/// comparisons.
fn is_ordinary(bytes: &[u8]) -> bool {
    let odd = |byte: u8| (byte < b' ') | (byte == 0x7f) | (byte == b'%') | (byte == b'\\');
    let dot_starts = bytes.first() == Some(&b'.') || has_pair(bytes, b'/', b'.');
    !dot_starts && !bytes.iter().fold(false, |found, &byte| found | odd(byte))
}

fn has_pair(bytes: &[u8], first: u8, second: u8) -> bool {
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    pairs.fold(false, |found, (&a, &b)| found | ((a == first) & (b == second)))
}

/// What is known of the segment under way.
#[derive(Debug, Default)]
struct SegmentDots {
    from: usize,
    dots: usize,
    named: bool,
    ended: bool,
}

impl SegmentDots {
    const fn dot(&mut self) {
        if !self.ended {
            self.dots += 1;
        }
    }

    const fn other(&mut self) {
        if !self.ended {
            self.named = true;
        }
    }

    const fn parameters(&mut self) {
        self.ended = true;
    }

    const fn end(&self) -> Result<(), PathFault> {
        if !self.named && (self.dots == 1 || self.dots == 2) {
            return Err(PathFault::DotSegment(self.from));
        }
        Ok(())
    }
}

/// The byte an escape stands for, and how many bytes it takes. The overlong two-byte forms of
/// ASCII characters count as those.
fn escaped(bytes: &[u8], at: usize) -> Result<(u8, usize), PathFault> {
    let byte = escape_at(bytes, at).ok_or(PathFault::BadEscape(at))?;
    if byte & 0xfe == 0xc0
        && let Some(next @ 0x80..=0xbf) = escape_at(bytes, at + 3)
    {
        return Ok(((byte & 1) << 6 | (next & 0x3f), 6));
    }
    Ok((byte, 3))
}

/// The form of a raw path that lax backends would see: escapes undone, `;parameters` cut off,
/// runs of slashes folded. `None` when that is the path itself, which is nearly always.
///
/// An escaped slash or semicolon counts like a plain one. Escapes that are no UTF-8 stay as they
/// are, in upper case. Allocates only when the form differs or the path has escapes.
#[must_use]
pub fn canonical(raw: &str) -> Option<String> {
    let bytes = raw.as_bytes();
    let marked = bytes.iter().fold(false, |found, &b| found | (b == b'%') | (b == b';'));
    if !marked && !has_pair(bytes, b'/', b'/') {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut cut = Cut::No;
    let mut at = 0;
    while at < bytes.len() {
        let (byte, width) = match escape_at(bytes, at) {
            Some(byte) => (byte, 3),
            None => (bytes[at], 1),
        };
        match (byte, cut) {
            // Raw parameters end at a raw slash: a backend that cuts before it decodes does so.
            (b'/', Cut::Raw) if width > 1 => {}
            (b'/', _) => {
                cut = Cut::No;
                if out.last() != Some(&b'/') {
                    out.push(b'/');
                }
            }
            (b';', Cut::No) => cut = if width > 1 { Cut::Escaped } else { Cut::Raw },
            (_, Cut::Raw | Cut::Escaped) => {}
            (byte, Cut::No) => out.push(byte),
        }
        at += width;
    }
    let text = readable(out);
    (text != raw).then_some(text)
}

/// Whether parameters are being left out, and how they began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    No,
    Raw,
    Escaped,
}

fn readable(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let mut out = String::new();
        for chunk in error.as_bytes().utf8_chunks() {
            out.push_str(chunk.valid());
            for byte in chunk.invalid() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_two_readers_would_read_differently() {
        use PathFault::{Backslash, BadEscape, Control, DotSegment, Nul};
        for (raw, fault) in [
            ("/public/../internal/x", DotSegment(8)),
            ("/public/%2e%2e/internal/x", DotSegment(8)),
            ("/public/.%2E/internal/x", DotSegment(8)),
            ("/public/%2e./x", DotSegment(8)),
            ("/a/.", DotSegment(3)),
            ("/a/./b", DotSegment(3)),
            ("/a/..", DotSegment(3)),
            ("/..", DotSegment(1)),
            ("..", DotSegment(0)),
            (".", DotSegment(0)),
            ("/a/..;x=1/b", DotSegment(3)),
            ("/a/..%3bx/b", DotSegment(3)),
            ("/a/.;/b", DotSegment(3)),
            ("/a%2f..%2Fb", DotSegment(5)),
            ("/a%2f..", DotSegment(5)),
            ("/a;x=%2f../b", DotSegment(8)),
            ("/a/%c0%ae%c0%ae/b", DotSegment(3)),
            ("/a%c0%af../b", DotSegment(8)),
            ("/a\\b", Backslash(2)),
            ("/a%5cb", Backslash(2)),
            ("/a%5Cb", Backslash(2)),
            ("/a%c1%9cb", Backslash(2)),
            ("/a%00b", Nul(2)),
            ("/a%c0%80b", Nul(2)),
            ("/a\nb", Control(2)),
            ("/a\u{7f}", Control(2)),
            ("/a\0", Control(2)),
            ("/a%", BadEscape(2)),
            ("/a%2", BadEscape(2)),
            ("/a%zz", BadEscape(2)),
            ("/a%2g", BadEscape(2)),
            ("/a%%20", BadEscape(2)),
            ("/a%u0041", BadEscape(2)),
        ] {
            assert_eq!(check_path(raw), Err(fault), "{raw}");
        }
    }

    #[test]
    fn lets_the_rest_through() {
        for raw in [
            "",
            "/",
            "*",
            "/a",
            "/a/",
            "//a",
            "/...",
            "/a/...",
            "/.well-known/x",
            "/a/b.c",
            "/a..b",
            "/..a",
            "/a/.b/..c",
            "/a;v=1",
            "/a;..",
            "/a;x=../b",
            "/a%20b",
            "/a%2Fb",
            "/%2e%2e%2e",
            "/a%252e%252e/b",
            "/internal%2Fx",
            "/\u{e4}",
            "/%c3%a4",
            "/%e4",
            "/a%0ab",
            "/%c0",
            "/;/",
        ] {
            assert_eq!(check_path(raw), Ok(()), "{raw}");
        }
    }

    #[test]
    fn canonical_form() {
        for (raw, form) in [
            ("/internal/x", None),
            ("/%69nternal/x", Some("/internal/x")),
            ("/internal%2Fx", Some("/internal/x")),
            ("//internal/x", Some("/internal/x")),
            ("/internal;a=b/x", Some("/internal/x")),
            ("/internal%3ba=b/x", Some("/internal/x")),
            ("/internal/x;", Some("/internal/x")),
            ("/a;x=%2Fb/c", Some("/a/c")),
            ("/a%3bx=%2Fb/c", Some("/a/b/c")),
            ("/a/;x/b", Some("/a/b")),
            ("/a%2F%2fb", Some("/a/b")),
            ("/a///", Some("/a/")),
            ("/INTERNAL/x", None),
            ("/a%2541", Some("/a%41")),
            ("/%e4/%C3%A4", Some("/%E4/\u{e4}")),
            ("/%E4", None),
            ("/%zz", None),
            ("", None),
            ("*", None),
            ("/", None),
        ] {
            assert_eq!(canonical(raw).as_deref(), form, "{raw}");
        }
    }
}
