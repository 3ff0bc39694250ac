//! Deleting selectors with everything that belongs to them.

use longmen_core::model::{Level, Rule, Selector};
use longmen_core::sync::{Event, Group};

use crate::Result;
use crate::change::{Change, Operation};
use crate::repository::conditioned::find_many_for_update;
use crate::repository::{binding, condition, data_permission, rule};
use crate::state::Binding;
use crate::statement::execute_in;
use crate::tx::UnitOfWork;

/// What [`delete`] took away.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Removed {
    /// The selectors that existed, with their conditions.
    pub selectors: Vec<Selector>,
    /// Their rules, with their conditions.
    pub rules: Vec<Rule>,
    /// Their bindings, with the upstreams.
    pub bindings: Vec<Binding>,
}

impl Removed {
    /// Records all of it, in the order in which stock admins push it: per binding the announcement
    /// and the upstreams, then the rules, then the selectors.
    ///
    /// Source: ShenYu 2.7.1, order of the frames of a selector delete.
    pub fn record(&self, uow: &mut UnitOfWork) {
        let namespace = |id: &Option<String>| id.clone().unwrap_or_default();
        for binding in &self.bindings {
            binding.record_deleted(uow);
        }
        for rule in &self.rules {
            uow.record(
                Change::new(
                    namespace(&rule.namespace_id),
                    Group::Rule,
                    &*rule.id,
                    Operation::Delete,
                )
                .stock_event(Event::Delete)
                .before(rule),
            );
        }
        for selector in &self.selectors {
            uow.record(
                Change::new(
                    namespace(&selector.namespace_id),
                    Group::Selector,
                    &*selector.id,
                    Operation::Delete,
                )
                .stock_event(Event::Delete)
                .before(selector),
            );
        }
    }
}

/// Deletes selectors, their conditions, rules, bindings with upstreams (and the discovery, when it
/// was for one selector only), and all grants on them. Unknown ids are passed over.
///
/// Records nothing: call [`Removed::record`].
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<Removed> {
    let selectors: Vec<Selector> = find_many_for_update::<Selector>(uow, ids)
        .await?
        .into_iter()
        .map(|row| row.object)
        .collect();
    let selector_ids: Vec<&str> = selectors.iter().map(|selector| selector.id.as_str()).collect();
    // None is added while the selectors are held. As they are once nobody else changes them.
    let rules = rule::of_selectors_for_update(uow, &selector_ids).await?;
    let rules: Vec<Rule> = rules.into_iter().map(|row| row.object).collect();
    let rule_ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let bindings = binding::delete_of_selectors(uow, &selector_ids).await?;
    data_permission::delete_of(uow, Level::Selector, &selector_ids).await?;
    data_permission::delete_of(uow, Level::Rule, &rule_ids).await?;
    condition::delete(uow, Level::Rule, &rule_ids).await?;
    execute_in!(uow, "DELETE FROM rule WHERE id IN ({ids})", rule_ids);
    condition::delete(uow, Level::Selector, &selector_ids).await?;
    execute_in!(uow, "DELETE FROM selector WHERE id IN ({ids})", selector_ids);
    Ok(Removed { selectors, rules, bindings })
}
