//! The value of one path segment: decoded, without parameters.

use std::borrow::Cow;

use crate::condition::text::escape_at;

/// What is compared of a raw segment: up to `;`, escapes undone. `None` with a broken escape.
pub(super) fn value(raw: &str) -> Option<Cow<'_, str>> {
    let raw = raw.split_once(';').map_or(raw, |(before, _)| before);
    if !raw.contains('%') {
        return Some(Cow::Borrowed(raw));
    }
    let mut out = Vec::with_capacity(raw.len());
    for byte in decoded(raw) {
        out.push(byte?);
    }
    Some(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

/// Whether [`value`] of `raw` is `wanted`, without building it.
pub(super) fn decoded_eq(raw: &str, wanted: &str) -> bool {
    if raw == wanted && !raw.contains(['%', ';']) {
        return true;
    }
    let raw = raw.split_once(';').map_or(raw, |(before, _)| before);
    decoded(raw).eq(wanted.bytes().map(Some))
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
