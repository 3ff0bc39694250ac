//! Comparing an answer with a recorded one.
//!
//! Placeholders such as `<id4>` stand for values that differ per run: each is bound at its first
//! appearance and must be the same from then on. An absent member equals null.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What the placeholders stand for in this run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bindings(BTreeMap<String, String>);

/// Whether the order of lists counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Counts,
    MeansNothing,
}

impl Bindings {
    /// Says what a placeholder stands for.
    pub(crate) fn bind(&mut self, placeholder: &str, value: &str) {
        self.0.insert(placeholder.to_owned(), value.to_owned());
    }

    /// Replaces the placeholders in a request.
    ///
    /// # Errors
    /// The first placeholder that is not bound.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((start, end)) = next_placeholder(rest) {
            let name = &rest[start..end];
            filled.push_str(&rest[..start]);
            filled.push_str(self.0.get(name).ok_or_else(|| name.to_owned())?);
            rest = &rest[end..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Compares texts, binding what is new.
    fn text(&mut self, wanted: &str, got: &str) -> bool {
        if wanted == got {
            return true;
        }
        let Some((start, end)) = next_placeholder(wanted) else { return false };
        let (Some(rest), name) = (got.strip_prefix(&wanted[..start]), &wanted[start..end]) else {
            return false;
        };
        let after = &wanted[end..];
        if let Some(bound) = self.0.get(name).cloned() {
            return rest.strip_prefix(&bound).is_some_and(|rest| self.text(after, rest));
        }
        // Unbound: as much as the kind of value allows.
        let length = value_length(name, rest);
        if length == 0 || !self.clone().text(after, &rest[length..]) {
            return false;
        }
        if is_bound_once(name) {
            self.0.insert(name.to_owned(), rest[..length].to_owned());
        }
        self.text(after, &rest[length..])
    }

    /// Compares values.
    ///
    /// # Errors
    /// Where and how they differ.
    pub(crate) fn value(
        &mut self,
        wanted: &Value,
        got: &Value,
        order: Order,
        at: &str,
    ) -> Result<(), String> {
        match (wanted, got) {
            (Value::String(cut), _) if cut.contains("cut by the recorder)") => Ok(()),
            (Value::String(wanted), Value::String(got)) if self.text(wanted, got) => Ok(()),
            (Value::Object(wanted), Value::Object(got)) => self.object(wanted, got, order, at),
            (Value::Array(wanted), Value::Array(got)) => self.list(wanted, got, order, at),
            (Value::Number(wanted), Value::Number(got)) if wanted.as_f64() == got.as_f64() => {
                Ok(())
            }
            _ if wanted == got => Ok(()),
            _ => Err(format!("{at}: wanted {wanted}, got {got}")),
        }
    }

    fn object(
        &mut self,
        wanted: &Map<String, Value>,
        got: &Map<String, Value>,
        order: Order,
        at: &str,
    ) -> Result<(), String> {
        for (name, value) in wanted {
            let found = got.get(name).unwrap_or(&Value::Null);
            self.value(value, found, order, &format!("{at}.{name}"))?;
        }
        for (name, value) in got.iter().filter(|(_, value)| !value.is_null()) {
            if !wanted.contains_key(name) {
                return Err(format!("{at}.{name}: wanted nothing, got {value}"));
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        wanted: &[Value],
        got: &[Value],
        order: Order,
        at: &str,
    ) -> Result<(), String> {
        let (wanted, total) = match cut_list(wanted) {
            Some((total, start)) => (start, total),
            None => (wanted, Some(wanted.len())),
        };
        if let Some(total) = total.filter(|total| *total != got.len()) {
            return Err(format!("{at}: wanted {total} elements, got {}", got.len()));
        }
        if order == Order::Counts {
            for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                self.value(wanted, got, order, &format!("{at}[{index}]"))?;
            }
            return Ok(());
        }
        let mut left: Vec<&Value> = got.iter().collect();
        for (index, wanted) in wanted.iter().enumerate() {
            let mut first_fault = None;
            let found = left.iter().position(|candidate| {
                let mut trial = self.clone();
                match trial.value(wanted, candidate, order, &format!("{at}[{index}]")) {
                    Ok(()) => {
                        *self = trial;
                        true
                    }
                    Err(fault) => {
                        first_fault.get_or_insert(fault);
                        false
                    }
                }
            });
            match found {
                Some(place) => drop(left.remove(place)),
                None => return Err(first_fault.unwrap_or_else(|| format!("{at}[{index}]: none"))),
            }
        }
        Ok(())
    }
}

/// Compares the texts of failures, whose parts come in any order.
pub(crate) fn same_message(wanted: &str, got: &str) -> bool {
    fn parts(text: &str) -> Vec<&str> {
        let inner = text
            .strip_prefix("Request error! invalid argument [")
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        let mut parts: Vec<&str> = inner.split("| ").flat_map(|part| part.split(", ")).collect();
        parts.sort_unstable();
        parts
    }
    wanted == got
        || parts(wanted) == parts(got)
            && wanted.starts_with("Request error!") == got.starts_with("Request error!")
}

/// `[…, {"note": "list cut here by the recorder; it had 45 rows"}]`: the rows before, and how many
/// there were.
fn cut_list(list: &[Value]) -> Option<(Option<usize>, &[Value])> {
    let (last, start) = list.split_last()?;
    let note = last.as_object().filter(|object| object.len() == 1)?.get("note")?.as_str()?;
    let total = note.split_whitespace().find_map(|word| word.parse().ok());
    note.contains("cut here by the recorder").then_some((total, start))
}

fn next_placeholder(text: &str) -> Option<(usize, usize)> {
    const NAMES: [&str; 8] = ["id", "uuid", "key", "token", "date", "ms", "session", "hash"];
    text.match_indices('<').find_map(|(start, _)| {
        let end = start + text[start..].find('>')? + 1;
        let name = text[start + 1..end - 1].trim_end_matches(|c: char| c.is_ascii_digit());
        NAMES.contains(&name).then_some((start, end))
    })
}

/// Ids, namespace ids and keys are the same wherever they appear; times are not.
fn is_bound_once(name: &str) -> bool {
    name.ends_with('>') && name.contains(|c: char| c.is_ascii_digit())
}

/// How much of `text` can be a value of the placeholder.
fn value_length(name: &str, text: &str) -> usize {
    let while_true =
        |allowed: fn(char) -> bool| text.find(|c: char| !allowed(c)).unwrap_or(text.len());
    if name.starts_with("<date") {
        return while_true(|c| c.is_ascii_digit() || "-:. T+".contains(c));
    }
    if name.starts_with("<ms") || name.starts_with("<id") {
        return while_true(|c| c.is_ascii_digit());
    }
    while_true(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare(wanted: &Value, got: &Value, order: Order) -> Result<(), String> {
        Bindings::default().value(wanted, got, order, "")
    }

    #[test]
    fn a_placeholder_stands_for_one_value() {
        let wanted =
            json!({"a": "<id1>", "b": "{\"x\":\"<id1>\"}", "at": "<date>", "to": "<date>"});
        let same = json!({"a": "17", "b": "{\"x\":\"17\"}", "at": "2026-01-01 10:00:00",
                          "to": "2026-01-01 10:00:01", "extra": null});
        assert_eq!(compare(&wanted, &same, Order::Counts), Ok(()));
        let other = json!({"a": "17", "b": "{\"x\":\"18\"}", "at": "2026-01-01 10:00:00",
                           "to": "2026-01-01 10:00:01"});
        assert!(compare(&wanted, &other, Order::Counts).is_err());
        let none = json!({"a": "", "b": "{\"x\":\"\"}", "at": null, "to": null});
        assert!(compare(&wanted, &none, Order::Counts).is_err());
    }

    #[test]
    fn members_too_many_or_too_few_are_seen() {
        assert_eq!(compare(&json!({"a": null}), &json!({}), Order::Counts), Ok(()));
        assert!(compare(&json!({"a": 1}), &json!({}), Order::Counts).is_err());
        assert!(compare(&json!({}), &json!({"a": 1}), Order::Counts).is_err());
    }

    #[test]
    fn lists_compare_with_and_without_order() {
        let (wanted, got) = (json!([{"a": 1}, {"a": 2}]), json!([{"a": 2}, {"a": 1}]));
        assert!(compare(&wanted, &got, Order::Counts).is_err());
        assert_eq!(compare(&wanted, &got, Order::MeansNothing), Ok(()));
        assert!(compare(&json!([1, 1]), &json!([1, 2]), Order::MeansNothing).is_err());
        let cut = json!([1, {"note": "list cut here by the recorder; it had 3 rows"}]);
        assert_eq!(compare(&cut, &json!([1, 2, 3]), Order::Counts), Ok(()));
        assert!(compare(&cut, &json!([1, 2]), Order::Counts).is_err());
    }

    #[test]
    fn parts_of_messages_come_in_any_order() {
        assert!(same_message(
            "Request error! invalid argument [a: x| b: y]",
            "Request error! invalid argument [b: y| a: x]"
        ));
        assert!(!same_message("Request error! invalid argument [a: x]", "a: x"));
        assert!(!same_message("a: x", "a: y"));
    }

    #[test]
    fn requests_are_filled() {
        let mut bindings = Bindings::default();
        bindings.value(&json!("<id4>"), &json!("99"), Order::Counts, "").unwrap();
        assert_eq!(bindings.fill("/selector/<id4>?a=<b>").unwrap(), "/selector/99?a=<b>");
        assert_eq!(bindings.fill("/selector/<id5>").unwrap_err(), "<id5>");
    }
}
