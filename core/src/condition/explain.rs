//! What each condition made of a request, and why.

use super::predicate::{Predicate, Test};
use super::{CompileFault, CompiledConditions, RequestView};
use crate::model::{Condition, MatchMode};

/// The outcome of one condition for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionOutcome {
    /// Position in the list of conditions, from 0.
    pub index: usize,
    /// Whether it held.
    pub matched: bool,
    /// Whether the outcome of the whole list was settled before this condition came up, so that a
    /// live request is not asked for it.
    pub skipped: bool,
    /// What was asked, in words: `header x-env = "prod"`.
    pub wanted: String,
    /// What the request holds.
    pub got: Got,
}

/// What a condition found in a request. Values are as sent: mask secrets before showing them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    /// This value.
    Value(String),
    /// Nothing: absent.
    Missing,
    /// The value was not looked at; the condition compares this time.
    Time(jiff::Timestamp),
    /// The value was not looked at; the condition cannot be used.
    Unusable(Box<CompileFault>),
}

impl CompiledConditions {
    /// Says for each condition whether it holds, what was wanted and what was found.
    ///
    /// `texts` are the conditions that were compiled. Every condition is asked, by the code that
    /// serves requests; those a live request would not be asked for are marked.
    #[must_use]
    pub fn explain<V: RequestView + ?Sized>(
        &self,
        texts: &[Condition],
        view: &V,
    ) -> Vec<ConditionOutcome> {
        let decisive = matches!(self.mode(), MatchMode::Or);
        let mut settled = false;
        let outcome = |(index, predicate): (usize, &Predicate)| {
            let matched = predicate.holds(view);
            let skipped = settled;
            settled |= matched == decisive;
            let wanted = texts.get(index).map(wanted).unwrap_or_default();
            ConditionOutcome { index, matched, skipped, wanted, got: got(predicate, view) }
        };
        self.predicates().iter().enumerate().map(outcome).collect()
    }
}

fn got<V: RequestView + ?Sized>(predicate: &Predicate, view: &V) -> Got {
    match &predicate.test {
        Test::Never(fault) => Got::Unusable(fault.clone()),
        Test::NowBefore(_) | Test::NowAfter(_) => Got::Time(view.now()),
        _ => match predicate.source.value(view) {
            Some(value) => Got::Value(value.into_owned()),
            None => Got::Missing,
        },
    }
}

fn wanted(condition: &Condition) -> String {
    let mut text = condition.param_type.clone();
    let name = condition.param_name.as_deref().unwrap_or_default();
    let named = matches!(condition.param_type.as_str(), "header" | "query" | "cookie" | "post");
    if named && !name.is_empty() {
        text.push(' ');
        text.push_str(name);
    }
    text.push(' ');
    text.push_str(&condition.operator);
    if condition.operator != "isBlank" {
        let value = condition.param_value.as_deref().unwrap_or_default();
        text.push_str(&format!(" {:?}", value.trim_matches(|c| c <= ' ')));
    }
    text
}
