//! ShenYu's form of path and query on their way to the upstream (`shenyu.normalizeQuery`).
//!
//! Source: executed on ShenYu 2.7.1. A query is taken apart into pairs and put together again, the
//! pairs of one name side by side; where path or query hold a `%`, names and values are decoded (`+`
//! too) and encoded anew, everything but unreserved characters. Bytes that are not UTF-8 are lost.

use std::borrow::Cow;

/// Path and query in that form. Runs of `/` in the path become one.
pub(super) fn normalized(path: &str, query: Option<&str>) -> String {
    let mut out = String::with_capacity(path.len() + query.map_or(0, str::len) + 16);
    for character in path.chars() {
        if character != '/' || !out.ends_with('/') {
            out.push(character);
        }
    }
    let Some(query) = query else { return out };
    let anew = path.contains('%') || query.contains('%');
    let mut separator = '?';
    for (name, values) in grouped(query, anew) {
        for value in values {
            out.push(separator);
            separator = '&';
            push(&mut out, &name, anew);
            if let Some(value) = value {
                out.push('=');
                push(&mut out, &value, anew);
            }
        }
    }
    out
}

/// Names in the order of their first appearance, each with its values; `None` for a name alone.
type Grouped<'a> = Vec<(Cow<'a, str>, Vec<Option<Cow<'a, str>>>)>;

fn grouped(query: &str, decoded: bool) -> Grouped<'_> {
    let mut grouped: Grouped<'_> = Vec::new();
    for piece in query.split('&') {
        // The reference looks for a name: leading equal signs are passed over.
        let piece = piece.trim_start_matches('=');
        if piece.is_empty() {
            continue;
        }
        let (name, value) = match piece.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (piece, None),
        };
        let read = |text| if decoded { decode(text) } else { Cow::Borrowed(text) };
        let (name, value) = (read(name), value.map(read));
        match grouped.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => grouped.push((name, vec![value])),
        }
    }
    grouped
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Appends a name or value: with `anew` only unreserved characters stay as they are, else only what
/// may not stand in a query is encoded.
fn push(out: &mut String, text: &str, anew: bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        let stays = if anew {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
        } else {
            byte.is_ascii_graphic()
                && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        };
        if stays {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn vectors_of_the_reference() {
        for (sent, upstream) in [
            ("/p", "/p"),
            ("/p?", "/p"),
            ("/p?a=1&a=2&b", "/p?a=1&a=2&b"),
            ("/p?q=", "/p?q="),
            ("/p?a=1+2", "/p?a=1+2"),
            ("/p?a=1+2&b=%20", "/p?a=1%202&b=%20"),
            ("/p?a=b&c=d&a=%41", "/p?a=b&a=A&c=d"),
            ("/p?a=1%2B2", "/p?a=1%2B2"),
            ("/p?a=%3D%26", "/p?a=%3D%26"),
            ("/p?a=%231", "/p?a=%231"),
            ("/p?&&a=1", "/p?a=1"),
            ("/p?&&a=%31", "/p?a=1"),
            ("/p?=v", "/p?v"),
            ("/p?a=b=c", "/p?a=b=c"),
            ("/p?a==b", "/p?a==b"),
            ("/p?a=1;b=2", "/p?a=1;b=2"),
            ("/p?u=http://x.y/z?k=v", "/p?u=http://x.y/z?k=v"),
            ("/p?a=[x]", "/p?a=[x]"),
            ("/p?a=[x]&b=%20", "/p?a=%5Bx%5D&b=%20"),
            ("/p?a=:@/?", "/p?a=:@/?"),
            ("/p?a=:@/?%20", "/p?a=%3A%40%2F%3F%20"),
            ("/p?a=*'()!~-_.", "/p?a=*'()!~-_."),
            ("/p?a=*'()!~-_.%20", "/p?a=%2A%27%28%29%21~-_.%20"),
            ("/p/%20/x", "/p/%20/x"),
            ("/p/%20/x?", "/p/%20/x"),
            ("/p/%20/x?q", "/p/%20/x?q"),
            ("/p/%20/x?q=", "/p/%20/x?q="),
            ("/p//q", "/p/q"),
            ("/p;v=1?a=1", "/p;v=1?a=1"),
            ("/p?a=%E4%B8%AD", "/p?a=%E4%B8%AD"),
            ("/p/%20/x?a=b=c", "/p/%20/x?a=b%3Dc"),
            ("/p?%61=1", "/p?a=1"),
            ("/p?a=%e4%b8%ad", "/p?a=%E4%B8%AD"),
            ("/p/%e4?a=1", "/p/%e4?a=1"),
            ("/p?a=%C3%28", "/p?a=%EF%BF%BD%28"),
        ] {
            let (path, query) = match sent.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (sent, None),
            };
            assert_eq!(normalized(path, query), upstream, "{sent}");
        }
    }
}
