//! Right and wrong answers by kind of traffic.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Wrong answers that are told in words; the others are only counted.
const MAX_EXAMPLES: usize = 5;

/// What was seen of one kind of traffic.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Exchanges that went as they should.
    pub right: u64,
    /// Those that did not.
    pub wrong: u64,
    /// The first few of those, in words.
    pub examples: Vec<String>,
}

/// The counts of all lanes.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<&'static str, Kind>>);

impl Tally {
    /// Counts one exchange.
    pub fn count(&self, name: &'static str, outcome: anyhow::Result<()>) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.entry(name).or_insert_with(|| Kind { name, ..Kind::default() });
        match outcome {
            Ok(()) => kind.right += 1,
            Err(error) => {
                kind.wrong += 1;
                if kind.examples.len() < MAX_EXAMPLES {
                    kind.examples.push(format!("{error:#}"));
                }
            }
        }
    }

    /// What was counted so far, by name.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
