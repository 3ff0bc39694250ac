//! Bodies and rules of rule writes.

use longmen_core::model::{Rule, Selector};
use longmen_db::repository;

use crate::api::common::{MISSING_RULE, MISSING_SELECTOR, namespace_exists};
use crate::api::conditioned::request::{CommonDraft, ObjectRequest as _, narrow, object_request};
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

object_request! {
    /// A rule to create, or the new state of one.
    RuleRequest {
        /// The selector it belongs to.
        #[serde(default, deserialize_with = "lenient::opt_string")]
        pub selector_id: Option<String>,
    }
    /// The conditions, at least one; all of them are replaced.
    rule_conditions
}

/// A request whose required members are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleDraft {
    /// What selectors have too.
    pub common: CommonDraft,
    /// The selector.
    pub selector_id: String,
}

impl RuleRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the rule body, texts as executed.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        rules.not_blank("selectorId", self.selector_id.as_deref());
        rules.not_null("matchMode", self.match_mode.as_ref());
        rules.not_blank("name", self.name.as_deref());
        rules.not_null("enabled", self.enabled.as_ref());
        rules.not_null("loged", self.logged.as_ref());
        rules.not_null("sort", self.sort.as_ref());
        rules.not_null("matchRestful", self.match_restful.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        rules.not_empty("ruleConditions", self.rule_conditions.as_deref());
        for (index, condition) in self.rule_conditions.iter().flatten().enumerate() {
            rules.within(&format!("ruleConditions[{index}]."), |rules| {
                rules.not_blank("paramType", condition.param_type.as_deref());
                rules.not_blank("operator", condition.operator.as_deref());
                rules.not_blank("paramName", condition.param_name.as_deref());
            });
        }
    }

    /// The rest, checked after the field rules held.
    ///
    /// # Errors
    /// A match mode that is none; the refusal is ours.
    pub(crate) fn draft(&self) -> Result<RuleDraft, String> {
        Ok(RuleDraft {
            common: self.common(self.match_mode.unwrap_or_default())?,
            selector_id: self.selector_id.clone().unwrap_or_default(),
        })
    }
}

impl RequestBody for RuleRequest {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let mut tx = state.store().read().await?;
        if let Some(id) = self.id() {
            let found = repository::conditioned::find::<Rule>(&mut tx, id).await?.is_some();
            rules.exists("id", found, MISSING_RULE);
        }
        let selector_id = self.selector_id.as_deref().unwrap_or_default();
        let selector = repository::conditioned::find::<Selector>(&mut tx, selector_id).await?;
        rules.exists("selectorId", selector.is_some(), MISSING_SELECTOR);
        namespace_exists(&mut tx, self.namespace_id.as_deref(), rules).await
    }
}

// === impl RuleDraft ===

impl RuleDraft {
    /// The rule that is stored and synced.
    #[must_use]
    pub(crate) fn to_rule(&self, id: &str, plugin_name: &str) -> Rule {
        let common = &self.common;
        Rule {
            plugin_name: plugin_name.to_owned(),
            selector_id: self.selector_id.clone(),
            match_mode: common.match_mode,
            logged: common.logged,
            handle: common.handle.clone(),
            condition_list: Some(common.condition_list()),
            before_condition_list: None,
            match_restful: common.match_restful,
            id: id.to_owned(),
            name: Some(common.name.clone()),
            enabled: common.enabled,
            sort: Some(common.sort),
            namespace_id: Some(common.namespace_id.clone()),
        }
    }
}

narrow! {
    /// Which rules a search is for.
    RuleCondition
    /// Ids of their selectors; none means any.
    selectors as "condition.selectors"
}

#[cfg(test)]
mod tests;
