//! What a path pattern asks of the segments of a path, for those who build an index over paths.

use super::glob::Glob;

/// One step of a pattern over the segments of a path that are not empty.
///
/// A pattern takes no path that its steps do not take; the other way round they may take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    /// A segment that is this text.
    Literal(&'p str),
    /// One segment that begins with this text, which may be empty.
    One(&'p str),
    /// At the end: one segment, or none.
    Optional,
    /// Any number of segments; nothing is said of what follows.
    Rest,
}

/// The literal text that `pattern`, one segment of a pattern, begins with.
pub(super) fn literal_head<'p>(glob: &Glob, pattern: &'p str) -> &'p str {
    match glob {
        // What a replaced character stands for is not known.
        Glob::Tokens(_) if !pattern.contains('\u{fffd}') => {
            let end = pattern.find(['?', '*', '{']).unwrap_or(pattern.len());
            &pattern[..end]
        }
        Glob::Tokens(_) | Glob::Regex(_) => "",
    }
}

/// The literal text that everything `pattern` matches begins with.
///
/// `pattern` is a regular expression for whole values. Where it is hard to tell, the text is empty.
pub(crate) fn regex_head(pattern: &str) -> String {
    let body = pattern.strip_prefix('^').unwrap_or(pattern);
    if body.contains("\\Q") || !one_branch(body) {
        return String::new();
    }
    let mut head = String::new();
    let mut rest = body.chars();
    loop {
        let before = rest.as_str();
        let literal = match rest.next() {
            // `\<` and `\>` are no characters but edges of words.
            Some('\\') => rest.next().filter(|c| c.is_ascii_punctuation() && !"<>".contains(*c)),
            Some(c) if !"^$.|?*+()[]{}".contains(c) => Some(c),
            _ => None,
        };
        let Some(literal) = literal else {
            // A repetition belongs to the character before it; `+` wants it at least once.
            if crate::matcher::planted(crate::matcher::Planted::OptionalCharKept) {
                return head;
            }
            if before.starts_with(['?', '*', '{']) {
                head.pop();
            }
            return head;
        };
        head.push(literal);
    }
}

/// The longest text that stands in everything `pattern` matches, as far as can be told by reading its
/// outermost level; empty where nothing can be told.
pub(crate) fn regex_core(pattern: &str) -> String {
    let (mut run, mut longest) = (String::new(), String::new());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let mut tail = &rest[c.len_utf8()..];
        let mut literal = None;
        match c {
            '|' => return String::new(),
            '\\' => {
                let Some(escaped) = tail.chars().next() else { return String::new() };
                tail = &tail[escaped.len_utf8()..];
                // `\<` and `\>` are no characters but edges of words.
                literal = Some(escaped).filter(|c| c.is_ascii_punctuation() && !"<>".contains(*c));
                if literal.is_none() && tail.starts_with('{') {
                    // The name of a class.
                    tail = tail.split_once('}').map_or("", |(_, after)| after);
                }
            }
            '[' => match after_class(tail) {
                Some(after) => tail = after,
                None => return String::new(),
            },
            '(' => match after_group(tail) {
                Some(after) => tail = after,
                None => return String::new(),
            },
            '^' | '$' | '.' | ']' | ')' | '{' | '}' | '+' | '*' | '?' => {}
            c => literal = Some(c),
        }
        let optional = tail.starts_with(['?', '*', '{']);
        match literal {
            Some(c) if !optional => run.push(c),
            _ => run.clear(),
        }
        if run.len() > longest.len() {
            longest.clone_from(&run);
        }
        if optional || tail.starts_with('+') {
            // What follows a repetition need not stand beside what was before.
            run.clear();
            tail = tail.trim_start_matches(['?', '*', '+']);
            if tail.starts_with('{') {
                tail = tail.split_once('}').map_or("", |(_, after)| after);
            }
        }
        rest = tail;
    }
    longest
}

/// What follows the class whose bracket was read.
fn after_class(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let c = rest.chars().next()?;
        rest = match c {
            ']' => return Some(&rest[1..]),
            '[' => rest.split_once(":]")?.1,
            '\\' => &rest[1 + rest[1..].chars().next()?.len_utf8()..],
            c => &rest[c.len_utf8()..],
        };
    }
}

/// What follows the group whose parenthesis was read; `None` for one that only sets flags.
///
/// Expressions that nest deeper than the library allows do not get here.
fn after_group(text: &str) -> Option<&str> {
    if text.starts_with('?') && !text.starts_with("?:") {
        return None;
    }
    let mut rest = text;
    loop {
        let c = rest.chars().next()?;
        rest = match c {
            ')' => return Some(&rest[1..]),
            '(' => after_group(&rest[1..])?,
            '[' => after_class(&rest[1..])?,
            '\\' => &rest[1 + rest[1..].chars().next()?.len_utf8()..],
            c => &rest[c.len_utf8()..],
        };
    }
}

/// Whether no alternative stands at the outermost level, as far as can be told without reading
/// classes.
fn one_branch(pattern: &str) -> bool {
    let mut depth = 0_i32;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 || pattern.contains('[') => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{regex_core, regex_head};

    #[test]
    fn heads_of_expressions() {
        for (pattern, head) in [
            (r"/users/\d+/x", "/users/"),
            ("^/a/.*", "/a/"),
            (r"/a\.b\/c+d", "/a.b/c"),
            ("/ab?c", "/a"),
            ("/ab*c", "/a"),
            ("/ab{0,2}c", "/a"),
            ("/a|/b", ""),
            ("/a(x|y)", "/a"),
            ("/a([(]|y)|/c", ""),
            ("/a[|]", ""),
            ("(?i)/a", ""),
            ("/a(?i)b", "/a"),
            (r"\Q/a\E", ""),
            (r"\d", ""),
            (r"/a\<b", "/a"),
            (r"/\pLa", "/"),
            ("/\u{e9}?", "/"),
            ("/a", "/a"),
        ] {
            assert_eq!(regex_head(pattern), head, "{pattern}");
        }
    }

    #[test]
    fn cores_of_expressions() {
        for (pattern, core) in [
            ("/.*/r123[a-z]+", "/r123"),
            ("/ab?cde", "cde"),
            ("/ab+cd", "/ab"),
            ("/a{2,3}bc", "bc"),
            (r"/a\.b\/c", "/a.b/c"),
            ("/a|/bcd", ""),
            ("(/a|/b)/cde", "/cde"),
            ("(?i)/abc", ""),
            ("/abc(?i)d", ""),
            ("(?:x(y)z)*/ab", "/ab"),
            ("[^]|a]/ab", "/ab"),
            ("[[:alpha:]|]/ab", "/ab"),
            (r"\p{Greek}/ab", "/ab"),
            (r"\d{3}/ab", "/ab"),
            (r"a\<bcd", "bcd"),
            ("[", ""),
            ("(", ""),
            ("", ""),
        ] {
            assert_eq!(regex_core(pattern), core, "{pattern}");
        }
    }
}
