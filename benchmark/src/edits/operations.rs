//! The edits: a rule is created, moved to another path, switched off and on, deleted.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use super::Plan;
use super::probe::{Expect, Prober};
use super::table::Table;
use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::stats::Summary;

/// Failures after which going on tells nothing more.
const MAX_FAILURES: u32 = 20;

/// What is done to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// A rule for a path that had none.
    Create,
    /// The rule's path becomes another.
    Update,
    /// The rule is switched off.
    Disable,
    /// The rule is taken away while it is on.
    Delete,
}

/// What was measured for one operation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationResult {
    /// The operation.
    pub operation: Operation,
    /// From the admin's answer to the answer of the gateway that showed the effect; 0 where the
    /// gateway was first.
    pub effect: Summary,
    /// How long the admin took to answer.
    pub rest: Summary,
    /// Edits whose effect was not seen in time.
    pub failures: u32,
    /// What was wrong with the first few of them.
    pub examples: Vec<String>,
}

struct Measured {
    operation: Operation,
    effects: Vec<Duration>,
    rests: Vec<Duration>,
    failures: u32,
    examples: Vec<String>,
}

/// Where one rule goes through its life.
struct Life<'a> {
    prober: &'a Prober,
    api: &'a mut AdminApi,
    rule: Rule,
    first_path: String,
    second_path: String,
}

impl Operation {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Disable => "disable",
            Self::Delete => "delete",
        }
    }
}

/// Leads as many rules through their lives as the plan says, one after the other, each in another
/// selector.
pub(super) async fn measure(
    plan: &Plan,
    table: &Table,
    prober: &Prober,
    api: &mut AdminApi,
) -> anyhow::Result<Vec<OperationResult>> {
    let all = [Operation::Create, Operation::Update, Operation::Disable, Operation::Delete];
    let mut measured = all.map(Measured::new);
    let selectors = table.selectors();
    for turn in 0..plan.repeats as usize {
        // Spread over the whole table, first and last included.
        let number =
            turn * (selectors.len() - 1) / (plan.repeats as usize).max(2).saturating_sub(1);
        let first_path = table.spare_path(number, &format!("new{turn}"));
        let second_path = table.spare_path(number, &format!("moved{turn}"));
        let rule = Rule {
            selector_id: selectors[number].clone(),
            name: format!("edit{turn}"),
            sort: plan.rules + 1,
            condition: PathCondition::equal(first_path.as_str()),
        };
        let mut life = Life { prober, api, rule, first_path, second_path };
        life.lead(&mut measured, Duration::from_millis(plan.pause_ms)).await?;
        let failures: u32 = measured.iter().map(|entry| entry.failures).sum();
        if failures >= MAX_FAILURES {
            eprintln!("giving up after {failures} edits that had no effect");
            break;
        }
    }
    Ok(measured.into_iter().map(Measured::sum_up).collect())
}

impl Life<'_> {
    /// # Errors
    /// When the admin refuses; what the gateway does not do is counted.
    async fn lead(&mut self, measured: &mut [Measured; 4], pause: Duration) -> anyhow::Result<()> {
        let [create, update, disable, delete] = measured;
        let (first, second) = (self.first_path.clone(), self.second_path.clone());

        let edit = self.edit(&first, Expect::NotServed, Expect::Served, Step::Create).await?;
        create.note(edit);
        let id = self.api.rule_id(&self.rule.selector_id, &self.rule.name).await?;
        tokio::time::sleep(pause).await;

        self.rule.condition = PathCondition::equal(second.as_str());
        let edit = self.edit(&second, Expect::NotServed, Expect::Served, Step::Update(&id)).await?;
        // The old path must have gone in the same moment.
        let gone = self.prober.expect(&first, Expect::NotServed).await;
        update.note(edit.and_then(|times| gone.map(|_| times)));
        tokio::time::sleep(pause).await;

        let step = Step::Enable(&id, false);
        let edit = self.edit(&second, Expect::Served, Expect::NotServed, step).await?;
        disable.note(edit);
        tokio::time::sleep(pause).await;

        let step = Step::Enable(&id, true);
        let back = self.edit(&second, Expect::NotServed, Expect::Served, step).await?;
        let edit = self.edit(&second, Expect::Served, Expect::NotServed, Step::Delete(&id)).await?;
        delete.note(back.and(edit));
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Makes one edit while the prober is at work; the outer error is the admin's.
    async fn edit(
        &mut self,
        path: &str,
        before: Expect,
        after: Expect,
        step: Step<'_>,
    ) -> anyhow::Result<anyhow::Result<Times>> {
        if let Err(error) = self.prober.expect(path, before).await {
            return Ok(Err(error.context(format!("before {step:?}"))));
        }
        let watch = self.prober.watch(path, after)?;
        let asked = Instant::now();
        match step {
            Step::Create => self.api.create_rule(&self.rule).await,
            Step::Update(id) => self.api.update_rule(id, &self.rule).await,
            Step::Enable(id, enabled) => self.api.enable_rule(id, enabled).await,
            Step::Delete(id) => self.api.delete_rule(id).await,
        }?;
        let answered = Instant::now();
        let seen = watch.seen().await.with_context(|| format!("after {step:?}"));
        Ok(seen.map(|seen| Times {
            effect: seen.saturating_duration_since(answered),
            rest: answered.duration_since(asked),
        }))
    }
}

#[derive(Debug)]
enum Step<'a> {
    Create,
    Update(&'a str),
    Enable(&'a str, bool),
    Delete(&'a str),
}

struct Times {
    effect: Duration,
    rest: Duration,
}

// === impl Measured ===

impl Measured {
    const fn new(operation: Operation) -> Self {
        Self {
            operation,
            effects: Vec::new(),
            rests: Vec::new(),
            failures: 0,
            examples: Vec::new(),
        }
    }

    fn note(&mut self, edit: anyhow::Result<Times>) {
        match edit {
            Ok(times) => {
                self.effects.push(times.effect);
                self.rests.push(times.rest);
            }
            Err(error) => {
                self.failures += 1;
                if self.examples.len() < 5 {
                    self.examples.push(format!("{error:#}"));
                }
            }
        }
    }

    fn sum_up(self) -> OperationResult {
        OperationResult {
            operation: self.operation,
            effect: Summary::of(&self.effects),
            rest: Summary::of(&self.rests),
            failures: self.failures,
            examples: self.examples,
        }
    }
}
