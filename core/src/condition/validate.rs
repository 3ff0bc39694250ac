//! The check before conditions are stored.

use super::compile::Compiler;
use super::fault::{CompileFault, ConditionField};
use crate::model::Condition;

/// Checks the conditions of one selector or rule before they are stored.
///
/// Returns at most one fault a condition, in order; empty when all may be stored. A fault that the
/// reference's admin also refuses carries its text in [`CompileFault::stock`]; the others are what
/// it stores and no gateway can use. Values are checked as given, before they are trimmed.
#[must_use]
pub fn validate(compiler: &mut Compiler, conditions: &[Condition]) -> Vec<CompileFault> {
    let unusable = compiler.compile(0, conditions).faults;
    let mut unusable = unusable.into_iter().peekable();
    let mut faults = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let ours = unusable.next_if(|fault| fault.index == index);
        let stock = (condition.param_type == "uri").then(|| check_uri(condition)).flatten();
        faults.extend(stock.map(|fault| fault.at(index)).or(ours));
    }
    faults
}

/// What the reference checks of conditions on the path.
fn check_uri(condition: &Condition) -> Option<CompileFault> {
    let raw = condition.param_value.as_deref();
    let value = raw.unwrap_or_default();
    let fault = |expected: &str, text: String| {
        let fault = CompileFault::new(ConditionField::ParamValue, raw, expected.to_owned());
        Some(fault.with_stock(Some(text)))
    };
    let blank = value.trim().is_empty();
    match condition.operator.as_str() {
        "isBlank" if blank => None,
        "isBlank" => fault("no value for isBlank", "The URI must be blank".to_owned()),
        _ if blank => {
            let text = "The URI condition value cannot be empty.".to_owned();
            fault("a text that is not blank", text)
        }
        "=" | "startsWith" | "endsWith" | "match" | "exclude" | "contains" => {
            if !value.starts_with('/') {
                return fault("a path starting with /", "The URI must start with '/'".to_owned());
            }
            if value.contains([' ', '\t', '\n']) {
                let text = format!("The URI cannot contain whitespaces. Current value: {value}");
                return fault("a path without blanks, tabs and line ends", text);
            }
            None
        }
        _ => None,
    }
}

/// The text the reference's expression engine (RE2) refuses `pattern` with, as far as its reason
/// can be told; `None` for what that engine accepts or where its wording is not known.
///
/// Source: executed on ShenYu 2.7.1 for the bracket and the look-around; the rest by the engine's
/// documentation.
pub(super) fn stock_regex_text(pattern: &str) -> Option<String> {
    let reason = stock_regex_reason(pattern)?;
    Some(format!("error parsing regexp: {reason}"))
}

fn stock_regex_reason(pattern: &str) -> Option<String> {
    let mut depth = 0_i32;
    let mut rest = pattern;
    let mut repeatable = false;
    while let Some(c) = rest.chars().next() {
        let mut len = c.len_utf8();
        match c {
            '\\' => match rest[1..].chars().next() {
                None => return Some("trailing backslash at end of expression: ``".to_owned()),
                Some(next @ '1'..='9') => {
                    return Some(format!("invalid escape sequence: `\\{next}`"));
                }
                Some(next) => len += next.len_utf8(),
            },
            '[' => match class_len(rest) {
                Some(length) => len = length,
                None => return Some(format!("missing closing ]: `{rest}`")),
            },
            '(' => {
                if let Some(text) = unsupported_group(rest) {
                    return Some(format!("invalid or unsupported Perl syntax: `{text}`"));
                }
                depth += 1;
            }
            ')' if depth == 0 => return Some(format!("unexpected ): `{pattern}`")),
            ')' => depth -= 1,
            '*' | '+' | '?' if !repeatable => {
                return Some(format!("missing argument to repetition operator: `{c}`"));
            }
            _ => {}
        }
        repeatable = !matches!(c, '(' | '|');
        rest = &rest[len..];
    }
    (depth > 0).then(|| format!("missing closing ): `{pattern}`"))
}

/// The length of the class at the beginning of `rest`, if it is closed.
fn class_len(rest: &str) -> Option<usize> {
    let start = if rest.starts_with("[^") { 2 } else { 1 };
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(start) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' if at > start => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The beginning of a group that only a backtracking engine has.
fn unsupported_group(rest: &str) -> Option<&str> {
    ["(?=", "(?!", "(?<=", "(?<!", "(?>"].into_iter().find(|start| rest.starts_with(start))
}
