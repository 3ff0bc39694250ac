//! Undoing percent escapes.

/// Splits `application/x-www-form-urlencoded` text into decoded names and values.
///
/// Never fails: an invalid escape stays as it is, bytes that are no UTF-8 are replaced.
pub(super) fn form_pairs(text: &[u8]) -> Vec<(String, String)> {
    text.split(|&byte| byte == b'&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut halves = part.splitn(2, |&byte| byte == b'=');
            let name = halves.next().unwrap_or_default();
            let value = halves.next().unwrap_or_default();
            (decode(name, true), decode(value, true))
        })
        .collect()
}

/// Decodes one segment of a path.
pub(crate) fn path_segment(segment: &str) -> String {
    decode(segment.as_bytes(), false)
}

fn decode(text: &[u8], plus_is_space: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'+' if plus_is_space => bytes.push(b' '),
            b'%' => match (tail.first().copied().and_then(hex), tail.get(1).copied().and_then(hex))
            {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = &tail[2..];
                }
                _ => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded() {
        let pairs = form_pairs(b"a=1&b=x+y&c=%E4%BD%A0&d&=e&&f=%zz%4&g=%ff");
        let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("a", "1"),
                ("b", "x y"),
                ("c", "你"),
                ("d", ""),
                ("", "e"),
                ("f", "%zz%4"),
                ("g", "\u{fffd}")
            ]
        );
    }

    #[test]
    fn a_plus_in_a_path_is_a_plus() {
        assert_eq!(path_segment("a+b%20c%2Fd"), "a+b c/d");
    }
}
