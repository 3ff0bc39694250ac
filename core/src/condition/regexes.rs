//! Regular expressions: the reference's syntax, compiled once per text and shared.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use regex::{Regex, RegexBuilder};

/// The most that one compiled expression may occupy, in bytes.
const SIZE_LIMIT_BYTES: usize = 1 << 20;
/// The most that one search cache of an expression may occupy, in bytes.
const DFA_LIMIT_BYTES: usize = 1 << 19;
/// With fewer expressions than this, unused ones are not looked for.
const SWEEP_FLOOR: usize = 256;

/// How an expression is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flavour {
    /// `.` also matches line ends.
    pub(super) dot_all: bool,
    /// Upper and lower case are the same.
    pub(super) any_case: bool,
}

/// Why an expression cannot be used, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegexFault(pub(super) String);

/// Compiled expressions by text.
///
/// All of them match whole values only. Expressions that nothing uses any more are dropped when
/// their number has doubled since the last look.
#[derive(Debug)]
pub(super) struct Regexes {
    known: HashMap<Box<str>, Arc<Regex>, RandomState>,
    sweep_at: usize,
}

impl Regexes {
    pub(super) fn new() -> Self {
        Self { known: HashMap::default(), sweep_at: SWEEP_FLOOR }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The expression that matches exactly what `pattern` matches from start to end.
    ///
    /// # Errors
    /// `pattern` is no expression of this syntax, or too large.
    pub(super) fn whole(
        &mut self,
        pattern: &str,
        flavour: Flavour,
    ) -> Result<Arc<Regex>, RegexFault> {
        let body = translate(pattern)?;
        let dot = if flavour.dot_all { "s" } else { "" };
        let case = if flavour.any_case { "i" } else { "" };
        let text = format!(r"\A(?{dot}{case}:{body})\z");
        if let Some(known) = self.known.get(text.as_str()) {
            return Ok(Arc::clone(known));
        }
        let regex = RegexBuilder::new(&text)
            .size_limit(SIZE_LIMIT_BYTES)
            .dfa_size_limit(DFA_LIMIT_BYTES)
            .build()
            .map_err(|error| describe(&error))?;
        let regex = Arc::new(regex);
        self.known.insert(text.into_boxed_str(), Arc::clone(&regex));
        self.sweep();
        Ok(regex)
    }

    fn sweep(&mut self) {
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, regex| Arc::strong_count(regex) > 1);
            self.sweep_at = (self.known.len() * 2).max(SWEEP_FLOOR);
        }
    }
}

fn describe(error: &regex::Error) -> RegexFault {
    RegexFault(match error {
        regex::Error::CompiledTooBig(limit) => format!("it compiles to more than {limit} bytes"),
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    })
}

/// Rewrites the reference's syntax (RE2) to ours where the two read the same text differently:
/// the classes `\d \s \w` and `\b` are ASCII, `\Q…\E` quotes, a brace that is no repetition is a
/// literal, and inside a class `[`, `&` and `~` are literals.
fn translate(pattern: &str) -> Result<String, RegexFault> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut depth = 0_usize;
    let mut class = None::<usize>;
    while let Some(c) = rest.chars().next() {
        if c == '\\' {
            rest = escape(rest, class.is_some(), &mut out);
            continue;
        }
        let tail = &rest[c.len_utf8()..];
        match (class, c) {
            (None, '[') => {
                let skip = if tail.starts_with('^') { "[^" } else { "[" };
                out.push_str(skip);
                rest = &rest[skip.len()..];
                class = Some(rest.len());
                continue;
            }
            // A bracket right after the opening one is a literal.
            (Some(start), ']') if start != rest.len() => class = None,
            (Some(_), '[') if !tail.starts_with(':') => out.push('\\'),
            (Some(_), '[') => {
                if let Some(end) = rest.find(":]") {
                    out.push_str(&rest[..end + 2]);
                    rest = &rest[end + 2..];
                    continue;
                }
                out.push('\\');
            }
            (Some(_), '&' | '~') => out.push('\\'),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| RegexFault("a closing parenthesis opens nowhere".to_owned()))?;
            }
            (None, '{') if !is_repetition(rest) => out.push('\\'),
            (None, '}') if !closes_repetition(&out) => out.push('\\'),
            _ => {}
        }
        out.push(c);
        rest = tail;
    }
    Ok(out)
}

/// Writes the escape that `rest` begins with and returns what follows it.
fn escape<'p>(rest: &'p str, in_class: bool, out: &mut String) -> &'p str {
    let Some(c) = rest[1..].chars().next() else {
        out.push('\\');
        return "";
    };
    let tail = &rest[1 + c.len_utf8()..];
    let class = match c {
        'd' => "[:digit:]",
        'D' => "[:^digit:]",
        's' => "[:space:]",
        'S' => "[:^space:]",
        'w' => "[:word:]",
        'W' => "[:^word:]",
        'b' if !in_class => {
            out.push_str(r"(?-u:\b)");
            return tail;
        }
        'Q' => {
            let (quoted, after) = tail.split_once("\\E").unwrap_or((tail, ""));
            out.push_str(&regex::escape(quoted));
            return after;
        }
        'p' | 'P' if tail.starts_with('{') => {
            let end = tail.find('}').map_or(tail.len(), |at| at + 1);
            out.push_str(&rest[..2 + end]);
            return &tail[end..];
        }
        'x' if tail.starts_with('{') => {
            let end = tail.find('}').map_or(tail.len(), |at| at + 1);
            out.push_str(&rest[..2 + end]);
            return &tail[end..];
        }
        _ => {
            out.push('\\');
            out.push(c);
            return tail;
        }
    };
    if in_class {
        out.push_str(class);
    } else {
        out.push('[');
        out.push_str(class);
        out.push(']');
    }
    tail
}

/// Whether `rest` begins with `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(rest: &str) -> bool {
    let Some(end) = rest.find('}') else { return false };
    let inner = &rest[1..end];
    let (from, to) = inner.split_once(',').unwrap_or((inner, ""));
    !from.is_empty() && from.bytes().chain(to.bytes()).all(|b| b.is_ascii_digit())
}

/// Whether a `}` after what was written ends a repetition that was let through.
fn closes_repetition(out: &str) -> bool {
    let digits = out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
    digits.len() < out.len() && digits.ends_with('{') && !digits.ends_with("\\{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_syntax_of_the_reference() {
        let rows: [(&str, &[&str], &[&str]); 14] = [
            (r"/a/\d+", &["/a/12"], &["/a/12x", "/b/a/12", "/a/\u{0663}"]),
            ("a|ab", &["a", "ab"], &["abc"]),
            (r"[\w-]+", &["a-b_1"], &["a b", "\u{e9}"]),
            (r"[^\s]", &["a"], &[" "]),
            (r"\Qa.b\E+", &["a.b", "a.bb"], &["axb"]),
            ("[]a]+", &["]a"], &["b"]),
            ("[[]", &["["], &["]"]),
            ("[a&&b]+", &["a&b"], &["c"]),
            ("[[:alpha:]]+", &["ab"], &["a1"]),
            ("a{2}", &["aa"], &["a", "a{2}"]),
            ("{id}", &["{id}"], &["id"]),
            ("a.c", &["abc"], &["a\nc"]),
            ("(?i)ab", &["AB"], &["AC"]),
            (r"(x)\b.*", &["x y"], &["xy"]),
        ];
        let mut regexes = Regexes::new();
        for (pattern, hits, misses) in rows {
            let regex = regexes.whole(pattern, Flavour::default()).unwrap();
            for hit in hits {
                assert!(regex.is_match(hit), "{pattern} should match {hit}");
            }
            for miss in misses {
                assert!(!regex.is_match(miss), "{pattern} should not match {miss}");
            }
        }
    }

    #[test]
    fn refuses_what_is_no_expression() {
        let mut regexes = Regexes::new();
        for pattern in ["[", "(", "a)(?:b", "(?=a)", r"(a)\1", "*a", r"a\", "a{1000}{1000}"] {
            let fault = regexes.whole(pattern, Flavour::default()).unwrap_err();
            assert!(!fault.0.is_empty() && !fault.0.contains('\n'), "{pattern}: {fault:?}");
        }
        assert_eq!(regexes.len(), 0);
    }

    #[test]
    fn equal_texts_share_and_unused_ones_go() {
        let mut regexes = Regexes::new();
        let one = regexes.whole("a+", Flavour::default()).unwrap();
        let two = regexes.whole("a+", Flavour::default()).unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        let other = regexes.whole("a+", Flavour { any_case: true, dot_all: false }).unwrap();
        assert!(!Arc::ptr_eq(&one, &other));
        for number in 0..SWEEP_FLOOR {
            regexes.whole(&format!("a{number}"), Flavour::default()).unwrap();
        }
        assert!(regexes.len() < SWEEP_FLOOR, "{} are kept", regexes.len());
        assert!(Arc::ptr_eq(&one, &regexes.whole("a+", Flavour::default()).unwrap()));
    }
}
