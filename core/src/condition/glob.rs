//! Wildcards inside one path segment: `?`, `*`, `{name}`, `{name:regex}`.

use std::sync::Arc;

use regex::Regex;

use super::regexes::{Flavour, RegexFault, Regexes};

/// A piece of a segment pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// Exactly this character.
    Char(char),
    /// Any one character.
    One,
    /// Any run of characters, also none.
    Run,
}

/// A segment pattern that is neither a literal nor matches everything.
#[derive(Debug, Clone)]
pub(super) enum Glob {
    /// Wildcards only.
    Tokens(Box<[Token]>),
    /// With a constraint on a variable.
    Regex(Arc<Regex>),
}

/// What a segment pattern holds, part by part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'p> {
    Literal(&'p str),
    One,
    Run,
    Variable { name: &'p str, constraint: Option<&'p str> },
}

impl Glob {
    /// Compiles the parts of one segment.
    ///
    /// # Errors
    /// A constraint is no regular expression.
    pub(super) fn compile(parts: &[Part<'_>], regexes: &mut Regexes) -> Result<Self, RegexFault> {
        let constrained =
            parts.iter().any(|part| matches!(part, Part::Variable { constraint: Some(_), .. }));
        if !constrained {
            return Ok(Self::Tokens(tokens(parts)));
        }
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Literal(literal) => text.push_str(&regex::escape(literal)),
                Part::One => text.push('.'),
                Part::Run | Part::Variable { constraint: None, .. } => text.push_str(".*"),
                Part::Variable { constraint: Some(constraint), .. } => {
                    text.push('(');
                    text.push_str(constraint);
                    text.push(')');
                }
            }
        }
        regexes.whole(&text, Flavour { dot_all: true, any_case: false }).map(Self::Regex)
    }

    /// The longest text in all that fits; `pattern` is what it was compiled from.
    pub(super) fn core<'p>(&self, pattern: &'p str) -> &'p str {
        let longest = |parts: Vec<Part<'p>>| {
            let texts = parts.into_iter().map(|part| match part {
                Part::Literal(text) => text,
                Part::One | Part::Run | Part::Variable { .. } => "",
            });
            texts.max_by_key(|text| text.len()).unwrap_or_default()
        };
        match self {
            Self::Tokens(_) => longest(parts(pattern)),
            Self::Regex(_) => "",
        }
    }

    /// Writes a regular expression that matches, within a segment, all that fits, and perhaps more.
    pub(super) fn write_wider(&self, out: &mut String) {
        let Self::Tokens(tokens) = self else {
            return out.push_str("[^/]*");
        };
        let mut utf8 = [0; 4];
        for token in tokens {
            match token {
                Token::Char(c) => out.push_str(&regex::escape(c.encode_utf8(&mut utf8))),
                Token::One => out.push_str("[^/]"),
                Token::Run => out.push_str("[^/]*"),
            }
        }
    }

    /// Whether the whole of `text` fits.
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Tokens(tokens) => fits(tokens, text),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

fn tokens(parts: &[Part<'_>]) -> Box<[Token]> {
    let mut out: Vec<Token> = Vec::new();
    for part in parts {
        match part {
            Part::Literal(text) => out.extend(text.chars().map(Token::Char)),
            Part::One => out.push(Token::One),
            // Two runs in a row say no more than one.
            Part::Run | Part::Variable { .. } if out.last() == Some(&Token::Run) => {}
            Part::Run | Part::Variable { .. } => out.push(Token::Run),
        }
    }
    out.into_boxed_slice()
}

/// Matches without allocating: on a dead end the last run takes one character more.
fn fits(tokens: &[Token], text: &str) -> bool {
    let mut rest = text.chars();
    let mut at = 0;
    let mut retry = None::<(usize, std::str::Chars<'_>)>;
    loop {
        let stepped = match tokens.get(at) {
            Some(Token::Run) => {
                at += 1;
                if at == tokens.len() {
                    return true;
                }
                retry = Some((at, rest.clone()));
                continue;
            }
            Some(Token::One) => rest.next().is_some(),
            Some(Token::Char(wanted)) => rest.next() == Some(*wanted),
            None if rest.as_str().is_empty() => return true,
            None => false,
        };
        if stepped {
            at += 1;
            continue;
        }
        let Some((after_run, from)) = &mut retry else { return false };
        if from.next().is_none() {
            return false;
        }
        at = *after_run;
        rest = from.clone();
    }
}

/// Splits a segment pattern. What looks like a variable but is not closed is literal text.
pub(super) fn parts(segment: &str) -> Vec<Part<'_>> {
    let bytes = segment.as_bytes();
    let mut out = Vec::new();
    let mut literal_from = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (part, end) = match bytes[at] {
            b'?' => (Part::One, at + 1),
            b'*' => (Part::Run, at + 1),
            b'{' => match variable_end(bytes, at) {
                Some(end) => (variable(&segment[at + 1..end - 1]), end),
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        if literal_from < at {
            out.push(Part::Literal(&segment[literal_from..at]));
        }
        out.push(part);
        at = end;
        literal_from = end;
    }
    if literal_from < bytes.len() {
        out.push(Part::Literal(&segment[literal_from..]));
    }
    out
}

fn variable(inner: &str) -> Part<'_> {
    match inner.split_once(':') {
        Some((name, constraint)) => Part::Variable { name, constraint: Some(constraint) },
        None => Part::Variable { name: inner, constraint: None },
    }
}

/// The end of the variable that opens at `open`; braces inside a constraint come in pairs.
fn variable_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match bytes.get(at)? {
            b'}' if at == open + 1 => return None,
            b'}' => return Some(at + 1),
            b'{' => {
                let inner = at + 2;
                at = inner + bytes.get(inner..)?.iter().position(|&b| b == b'}')? + 1;
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Glob::compile(&parts(pattern), &mut Regexes::new()).unwrap().matches(text)
    }

    #[test]
    fn wildcards() {
        for (pattern, hits, misses) in [
            ("*.html", vec!["x.html", ".html", "a.html.html"], vec!["x.htm", "x.html5"]),
            ("x*y", vec!["xy", "xzzy", "xyxy"], vec!["x", "xyz"]),
            ("a*b*c", vec!["abc", "a1b2c", "abbcc", "abcbc"], vec!["ab", "acb"]),
            ("?", vec!["a", "\u{e9}"], vec!["", "ab"]),
            ("b?", vec!["bx"], vec!["b", "bxx"]),
            ("v{n}", vec!["v", "v1"], vec!["w1"]),
            ("v{n:[0-9]{1,2}}x", vec!["v1x", "v12x"], vec!["vx", "v123x"]),
            ("{a}-{b:[a-z]+}", vec!["1-x", "-x"], vec!["1-", "1x"]),
            ("{}", vec!["{}"], vec!["x"]),
            ("{a", vec!["{a"], vec!["x"]),
            ("a.b", vec!["a.b"], vec!["axb"]),
        ] {
            for hit in hits {
                assert!(matches(pattern, hit), "{pattern} should match {hit}");
            }
            for miss in misses {
                assert!(!matches(pattern, miss), "{pattern} should not match {miss}");
            }
        }
    }
}
