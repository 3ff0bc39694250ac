//! Bodies and rules of rule writes.

use longmen_core::model::{Condition, Rule, Selector};
use longmen_db::MAX_FILTER_IDS;
use longmen_db::repository::{self, NewCondition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::common::{MISSING_RULE, MISSING_SELECTOR, filled, namespace_exists};
use crate::api::condition::{ConditionRequest, keep_ids};
use crate::api::search::SearchRequest;
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

/// A rule to create, or the new state of one.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleRequest {
    /// The rule to change; one that exists makes a create an update.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The selector it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub selector_id: Option<String>,
    /// 0 = all conditions, 1 = any.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub match_mode: Option<i32>,
    /// Its name; need not be unique.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub name: Option<String>,
    /// Whether it takes part in matching.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub enabled: Option<bool>,
    /// Whether a match is logged; the reference spells it so.
    #[serde(rename = "loged", default, deserialize_with = "lenient::opt_bool")]
    pub logged: Option<bool>,
    /// Precedence, ascending.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub sort: Option<i32>,
    /// Settings of the plugin, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub handle: Option<String>,
    /// The conditions, at least one; all of them are replaced.
    pub rule_conditions: Option<Vec<ConditionRequest>>,
    /// Asks stock gateways not to cache its matches.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub match_restful: Option<bool>,
    /// The namespace it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// A request whose required members are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleDraft {
    /// The selector.
    pub selector_id: String,
    /// The namespace.
    pub namespace_id: String,
    /// Name.
    pub name: String,
    /// 0 = all conditions, 1 = any.
    pub match_mode: i32,
    /// Precedence.
    pub sort: i32,
    /// Whether it takes part in matching.
    pub enabled: bool,
    /// Whether a match is logged.
    pub logged: bool,
    /// Asks stock gateways not to cache its matches.
    pub match_restful: bool,
    /// Settings of the plugin.
    pub handle: Option<String>,
    /// Ids that were sent, and the conditions as they are stored.
    pub conditions: Vec<(Option<String>, Condition)>,
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

    /// The rule that the body names, if it names one.
    #[must_use]
    pub(crate) fn id(&self) -> Option<&str> {
        filled(self.id.as_deref())
    }

    /// The rest, checked after the field rules held.
    ///
    /// # Errors
    /// A match mode that is none; the refusal is ours.
    pub(crate) fn draft(&self) -> Result<RuleDraft, String> {
        let match_mode = self.match_mode.unwrap_or_default();
        if !(0..=1).contains(&match_mode) {
            return Err(format!("matchMode: {match_mode} is none; expected 0 (and) or 1 (or)"));
        }
        let conditions = self.rule_conditions.as_deref().unwrap_or_default();
        Ok(RuleDraft {
            selector_id: self.selector_id.clone().unwrap_or_default(),
            namespace_id: self.namespace_id.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
            match_mode,
            sort: self.sort.unwrap_or_default(),
            enabled: self.enabled.unwrap_or_default(),
            logged: self.logged.unwrap_or_default(),
            match_restful: self.match_restful.unwrap_or_default(),
            handle: self.handle.clone(),
            conditions: conditions.iter().map(|c| (c.id.clone(), c.to_condition())).collect(),
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
        Rule {
            plugin_name: plugin_name.to_owned(),
            selector_id: self.selector_id.clone(),
            match_mode: self.match_mode,
            logged: self.logged,
            handle: self.handle.clone(),
            condition_list: Some(self.conditions.iter().map(|(_, c)| c.clone()).collect()),
            before_condition_list: None,
            match_restful: self.match_restful,
            id: id.to_owned(),
            name: Some(self.name.clone()),
            enabled: self.enabled,
            sort: Some(self.sort),
            namespace_id: Some(self.namespace_id.clone()),
        }
    }

    /// The conditions to store. Of the ids that were sent only those in `own` are kept: another
    /// rule's condition is not taken over.
    #[must_use]
    pub(crate) fn new_conditions(&self, own: &[String]) -> Vec<NewCondition> {
        keep_ids(&self.conditions, own)
    }
}

/// Which rules a search is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleCondition {
    /// Text in the name; what follows a `!` must not be in it.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub keyword: Option<String>,
    /// Whether they are enabled.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub switch_status: Option<bool>,
    /// Ids of their selectors; none means any.
    pub selectors: Option<Vec<String>>,
    /// Their namespace.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

impl RequestBody for SearchRequest<RuleCondition> {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let selectors = self.condition.as_ref().and_then(|narrow| narrow.selectors.as_deref());
        rules.max_ids("condition.selectors", selectors, MAX_FILTER_IDS);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
