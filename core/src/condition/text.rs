//! Values out of raw texts: header, query, cookie.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, header};

/// The text of a header value.
///
/// UTF-8 is taken as it is and borrowed; other bytes are read as Latin-1, as servers of the
/// reference do, which allocates.
#[must_use]
pub fn header_text(value: &HeaderValue) -> Cow<'_, str> {
    let bytes = value.as_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    }
}

/// The first value of the parameter `name` in a raw query (without `?`).
///
/// Names and values are decoded: `+` is a space, escapes are UTF-8; an escape that is none stays
/// as it is. A parameter without `=` has no value: `None`. As in the reference `=` signs before a
/// name are skipped, and an empty name does not exist. Borrows unless something had to be decoded.
#[must_use]
pub fn query_value<'q>(raw_query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    for part in raw_query.split('&') {
        let part = part.trim_start_matches('=');
        let (raw_name, value) = match part.split_once('=') {
            Some((raw_name, value)) => (raw_name, Some(value)),
            None => (part, None),
        };
        if !raw_name.is_empty() && (raw_name == name || decode_form(raw_name) == name) {
            return value.map(decode_form);
        }
    }
    None
}

/// Undoes form encoding: `+` and percent escapes.
pub(super) fn decode_form(raw: &str) -> Cow<'_, str> {
    if !raw.bytes().any(|b| b == b'+' || b == b'%') {
        return Cow::Borrowed(raw);
    }
    let bytes = raw.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], escape_at(bytes, at)) {
            (_, Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', None) => out.push(b' '),
            (other, None) => out.push(other),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// The byte that the escape at `at` stands for, if there is a whole one.
pub(crate) fn escape_at(bytes: &[u8], at: usize) -> Option<u8> {
    if bytes.get(at) != Some(&b'%') {
        return None;
    }
    let digit = |offset: usize| {
        let byte = *bytes.get(at + offset)?;
        char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok())
    };
    Some(digit(1)? << 4 | digit(2)?)
}

/// The first cookie `name` in one `Cookie` header value.
///
/// Names are case-sensitive and trimmed; values are taken as sent, double quotes around them are
/// removed, a value with only an opening quote does not count, nor does a name without `=`.
#[must_use]
pub fn cookie_value<'c>(header: &'c str, name: &str) -> Option<&'c str> {
    header.split(';').find_map(|pair| {
        let (raw_name, value) = pair.split_once('=')?;
        let raw_name = raw_name.trim_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if raw_name != name || raw_name.is_empty() {
            return None;
        }
        match value.strip_prefix('"') {
            Some(rest) => rest.strip_suffix('"'),
            None => Some(value),
        }
    })
}

/// The first cookie `name` in all `Cookie` headers; HTTP/2 clients send several.
#[must_use]
pub fn headers_cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    headers.get_all(header::COOKIE).iter().find_map(|value| match header_text(value) {
        Cow::Borrowed(text) => cookie_value(text, name).map(Cow::Borrowed),
        Cow::Owned(text) => cookie_value(&text, name).map(|found| Cow::Owned(found.to_owned())),
    })
}
