//! `${name:default}` in values.

/// How deep placeholders may nest, in names, defaults and looked-up values together.
const DEPTH_LIMIT: usize = 16;

/// The most bytes that a value may grow to.
const LENGTH_LIMIT_BYTES: usize = 1024 * 1024;

/// Replaces all placeholders of `text` by what `lookup` finds for their names.
///
/// `${a:${b:c}}` nests, in names too; values found are resolved in turn; `\${` stands for a
/// plain `${`. A text without placeholders comes back as it is.
///
/// # Errors
/// What is wrong: nothing found and no default given, no closing brace, or a circle.
pub(super) fn resolve(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    resolve_at(text, lookup, &mut Vec::new())
}

fn resolve_at(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    open: &mut Vec<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('\\') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = closing(inside) else {
            return Err(format!("the placeholder \"{}\" has no closing brace", &rest[at..]));
        };
        out.push_str(&value_of(&inside[..end], lookup, open)?);
        rest = &inside[end + 1..];
        if out.len() > LENGTH_LIMIT_BYTES {
            return Err("its placeholders grow past 1 MB".to_owned());
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The value of what stands between the braces.
fn value_of(
    inside: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
    open: &mut Vec<String>,
) -> Result<String, String> {
    let (name, default) = match separator(inside) {
        Some(at) => (&inside[..at], Some(&inside[at + 1..])),
        None => (inside, None),
    };
    let name = resolve_at(name, lookup, open)?.trim().to_owned();
    if open.contains(&name) || open.len() >= DEPTH_LIMIT {
        return Err(format!("the placeholder ${{{name}}} refers to itself"));
    }
    open.push(name.clone());
    let value = match (lookup(&name), default) {
        (Some(found), _) => resolve_at(&found, lookup, open),
        (None, Some(default)) => resolve_at(default, lookup, open),
        (None, None) => Err(format!(
            "the placeholder ${{{name}}} has no value: no variable, argument or key of that name, \
             and no default"
        )),
    };
    open.pop();
    value
}

/// The place of the brace that closes the placeholder whose inside begins `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                depth += 1;
                at += 1;
            }
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The place of the colon between name and default, outside nested placeholders.
fn separator(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::resolve;

    fn look(name: &str) -> Option<String> {
        Some(str::to_owned(match name {
            "A" => "1",
            "B" => "${A}${A}",
            "which" => "A",
            "x" => "${y}",
            "y" => "${x}",
            "EMPTY" => "",
            _ => return None,
        }))
    }

    #[test]
    fn placeholders_resolve() {
        for (text, want) in [
            ("plain", "plain"),
            ("${A}", "1"),
            ("a${A}b${B}c", "a1b11c"),
            ("${NONE:d}", "d"),
            ("${NONE:}", ""),
            ("${EMPTY:d}", ""),
            ("${NONE:${ALSO:deep}}", "deep"),
            ("${NONE:http://h:80/p}", "http://h:80/p"),
            ("${${which}}", "1"),
            (r"\${A}", "${A}"),
            ("$A {b}", "$A {b}"),
            ("${NONE:a{b}", "a{b"),
        ] {
            assert_eq!(resolve(text, &look).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn faults_are_named() {
        for (text, want) in [
            (
                "${NONE}",
                "the placeholder ${NONE} has no value: no variable, argument or key of that name, and no default",
            ),
            ("a${A", "the placeholder \"${A\" has no closing brace"),
            ("${x}", "the placeholder ${x} refers to itself"),
        ] {
            assert_eq!(resolve(text, &look), Err(want.to_owned()), "{text}");
        }
    }
}
