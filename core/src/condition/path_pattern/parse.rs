//! From the text of a path pattern to its elements.

use super::{Element, PatternFault};
use crate::condition::glob::{Glob, Part, parts};
use crate::condition::regexes::{Flavour, RegexFault, Regexes};

const NO_CLOSE: &str = "Expected close capture character after variable name }";
const NO_OPEN: &str = "Missing preceding open capture character before variable name{";
const NESTED: &str = "Not allowed to nest variable captures";
const AFTER_REST: &str = "No more pattern data allowed after {*...} or ** pattern element";
const NO_CONSTRAINT: &str = "Missing regex constraint on capture";
const BAD_REGEX: &str = "Exception occurred in regex pattern compilation";
const REST_ALONE: &str = "{*...} can only be preceded by a path separator";

fn stock(text: impl Into<String>) -> PatternFault {
    PatternFault { text: text.into(), stock: true }
}

/// Splits the pattern at its slashes and compiles what stands between them.
pub(super) fn parse(pattern: &str, regexes: &mut Regexes) -> Result<Vec<Element>, PatternFault> {
    let mut elements = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < pattern.len() {
        let rest = &pattern[at..];
        if rest == "/**" {
            elements.push(Element::Rest);
            break;
        }
        if rest.starts_with("/**/") {
            return Err(stock(AFTER_REST));
        }
        if rest.starts_with('/') {
            elements.push(Element::Separator);
            at += 1;
            continue;
        }
        let scan = scan(rest, at + rest.len() == pattern.len())?;
        let text = &rest[..scan.len];
        let element = element(text, at, &scan, &mut names, regexes)?;
        if matches!(element, Element::Rest) && matches!(elements.last(), Some(Element::Separator)) {
            elements.pop();
        }
        elements.push(element);
        at += scan.len;
    }
    Ok(elements)
}

/// What stands between two slashes, before it is compiled.
#[derive(Debug, Default)]
struct Scan {
    len: usize,
    variables: usize,
    takes_rest: bool,
    star: bool,
    single: bool,
}

/// Walks over one segment of the pattern and checks its braces and names.
fn scan(rest: &str, reaches_end: bool) -> Result<Scan, PatternFault> {
    let mut scan = Scan::default();
    let mut open = None::<usize>;
    let mut at = 0;
    while let Some(c) = rest[at..].chars().next() {
        if c == '/' {
            break;
        }
        match c {
            '?' => scan.single = true,
            '{' if open.is_some() => return Err(stock(NESTED)),
            '{' => open = Some(at),
            '}' if open.is_none() => return Err(stock(NO_OPEN)),
            '}' => {
                if scan.takes_rest && !(reaches_end && at + 1 == rest.len()) {
                    return Err(stock(AFTER_REST));
                }
                scan.variables += 1;
                open = None;
            }
            ':' if open.is_some() && !scan.takes_rest => {
                at = constraint_end(rest, at + 1)?;
                scan.variables += 1;
                open = None;
                continue;
            }
            '*' => {
                scan.takes_rest |= open.is_some_and(|from| from + 1 == at);
                scan.star = true;
            }
            _ => {}
        }
        if let Some(from) = open {
            check_name(c, at, from + 1 + usize::from(scan.takes_rest))?;
        }
        at += c.len_utf8();
    }
    if open.is_some() {
        return Err(stock(NO_CLOSE));
    }
    scan.len = at;
    Ok(scan)
}

/// Checks one character inside a variable; its name starts at `name_from`.
fn check_name(c: char, at: usize, name_from: usize) -> Result<(), PatternFault> {
    let starts = c.is_alphabetic() || c == '_' || c == '$';
    if at == name_from && !starts {
        return Err(stock(format!("Char '{c}' not allowed at start of captured variable name")));
    }
    if at > name_from && !(starts || c.is_numeric() || c == '-') {
        return Err(stock(format!("Char '{c}' is not allowed in a captured variable name")));
    }
    Ok(())
}

/// The position after the brace that ends the constraint starting at `from`.
fn constraint_end(rest: &str, from: usize) -> Result<usize, PatternFault> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (offset, c) in rest[from..].char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' if offset == 0 => return Err(stock(NO_CONSTRAINT)),
            '}' => return Ok(from + offset + 1),
            '/' => return Err(stock(NO_CLOSE)),
            _ => {}
        }
    }
    Err(stock(NO_CLOSE))
}

fn element<'p>(
    text: &'p str,
    from: usize,
    scan: &Scan,
    names: &mut Vec<&'p str>,
    regexes: &mut Regexes,
) -> Result<Element, PatternFault> {
    let range = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    if scan.variables == 0 {
        return Ok(match text {
            "*" => Element::Star,
            _ if scan.star => Element::Glob(Box::new(glob(&parts(text), regexes)?), false),
            _ if scan.single => Element::Single(Box::new(glob(&parts(text), regexes)?)),
            _ => Element::Literal(range(from), range(from + text.len())),
        });
    }
    if scan.variables == 1 && text.starts_with('{') && text.ends_with('}') {
        let inner = &text[1..text.len() - 1];
        if scan.takes_rest {
            return Ok(Element::Rest);
        }
        let (name, constraint) = match inner.split_once(':') {
            Some((name, constraint)) => (name, Some(whole(constraint, regexes)?)),
            None => (inner, None),
        };
        record(name, names)?;
        return Ok(Element::Variable(constraint));
    }
    if scan.takes_rest {
        return Err(stock(REST_ALONE));
    }
    let parts = parts(text);
    for part in &parts {
        if let Part::Variable { name, .. } = part {
            record(name, names)?;
        }
    }
    Ok(Element::Glob(Box::new(glob(&parts, regexes)?), true))
}

fn record<'p>(name: &'p str, names: &mut Vec<&'p str>) -> Result<(), PatternFault> {
    if names.contains(&name) {
        return Err(stock(format!("Not allowed to capture '{name}' twice in the same pattern")));
    }
    names.push(name);
    Ok(())
}

fn glob(parts: &[Part<'_>], regexes: &mut Regexes) -> Result<Glob, PatternFault> {
    Glob::compile(parts, regexes).map_err(bad_regex)
}

fn whole(
    constraint: &str,
    regexes: &mut Regexes,
) -> Result<std::sync::Arc<regex::Regex>, PatternFault> {
    let flavour = Flavour { dot_all: true, any_case: false };
    let regex = regexes.whole(constraint, flavour).map_err(bad_regex)?;
    if regex.captures_len() > 1 {
        // The reference stores it and then answers every request with an error.
        let text = format!("No capture groups allowed in the constraint regex: {constraint}");
        return Err(PatternFault { text, stock: false });
    }
    Ok(regex)
}

fn bad_regex(fault: RegexFault) -> PatternFault {
    PatternFault { text: format!("{BAD_REGEX}: {}", fault.0), stock: false }
}
