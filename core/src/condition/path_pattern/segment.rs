//! The value of one path segment: decoded, without parameters.

use std::borrow::Cow;

use crate::condition::text::escape_at;

/// A segment as it stands in the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawSegment<'p> {
    text: &'p str,
    /// It holds neither escapes nor parameters.
    plain: bool,
}

impl<'p> RawSegment<'p> {
    /// The segment that starts at `from`, up to the next slash.
    pub(super) fn at(path: &'p str, from: usize) -> Self {
        let mut plain = true;
        let mut end = from;
        for &byte in &path.as_bytes()[from..] {
            match byte {
                b'/' => break,
                b'%' | b';' => plain = false,
                _ => {}
            }
            end += 1;
        }
        Self { text: &path[from..end], plain }
    }

    /// Its length in the path, in bytes.
    pub(super) const fn len(self) -> usize {
        self.text.len()
    }

    /// What is compared: up to `;`, escapes undone. `None` with a broken escape.
    pub(super) fn value(self) -> Option<Cow<'p, str>> {
        if self.plain {
            return Some(Cow::Borrowed(self.text));
        }
        let raw = self.without_parameters();
        if !raw.contains('%') {
            return Some(Cow::Borrowed(raw));
        }
        let bytes = decoded(raw).collect::<Option<Vec<u8>>>()?;
        Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Whether [`value`](Self::value) is `wanted`, without building it.
    pub(super) fn equals(self, wanted: &str) -> bool {
        if self.plain {
            return self.text == wanted;
        }
        decoded(self.without_parameters()).eq(wanted.bytes().map(Some))
    }

    fn without_parameters(self) -> &'p str {
        self.text.split_once(';').map_or(self.text, |(before, _)| before)
    }
}

fn decoded(raw: &str) -> impl Iterator<Item = Option<u8>> + '_ {
    let bytes = raw.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let byte = *bytes.get(at)?;
        if byte != b'%' {
            at += 1;
            return Some(Some(byte));
        }
        let decoded = escape_at(bytes, at);
        at += 3;
        Some(decoded)
    })
}
