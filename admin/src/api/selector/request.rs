//! Bodies and rules of selector writes.

use longmen_core::model::{Condition, Selector};
use longmen_db::MAX_FILTER_IDS;
use longmen_db::repository::{self, NewCondition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::common::{MISSING_SELECTOR, filled, namespace_exists};
use crate::api::condition::{ConditionRequest, keep_ids};
use crate::api::search::SearchRequest;
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

/// A selector to create, or the new state of one.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelectorRequest {
    /// The selector to change; one that exists makes a create an update.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The plugin template it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub plugin_id: Option<String>,
    /// Its name; need not be unique.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub name: Option<String>,
    /// 0 = every request, 1 = by conditions.
    #[serde(rename = "type", default, deserialize_with = "lenient::opt_i32")]
    pub selector_type: Option<i32>,
    /// 0 = all conditions, 1 = any; needed when `type` is 1.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub match_mode: Option<i32>,
    /// Precedence from 1 to 1000, ascending.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub sort: Option<i32>,
    /// Whether it takes part in matching.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub enabled: Option<bool>,
    /// Whether a match is logged; the reference spells it so.
    #[serde(rename = "loged", default, deserialize_with = "lenient::opt_bool")]
    pub logged: Option<bool>,
    /// Whether rules are matched after it.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub continued: Option<bool>,
    /// Asks stock gateways not to cache its matches.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub match_restful: Option<bool>,
    /// Settings of the plugin, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub handle: Option<String>,
    /// The conditions; all of them are replaced. Never null: `[]` for none.
    pub selector_conditions: Option<Vec<ConditionRequest>>,
    /// The namespace it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// A request whose required members are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectorDraft {
    /// The plugin template.
    pub plugin_id: String,
    /// The namespace.
    pub namespace_id: String,
    /// Name.
    pub name: String,
    /// 0 = every request, 1 = by conditions.
    pub selector_type: i32,
    /// 0 = all conditions, 1 = any; always 0 when every request is taken.
    pub match_mode: i32,
    /// Precedence.
    pub sort: i32,
    /// Whether it takes part in matching.
    pub enabled: bool,
    /// Whether a match is logged.
    pub logged: bool,
    /// Whether rules are matched after it.
    pub continued: bool,
    /// Asks stock gateways not to cache its matches.
    pub match_restful: bool,
    /// Settings of the plugin.
    pub handle: Option<String>,
    /// Ids that were sent, and the conditions as they are stored.
    pub conditions: Vec<(Option<String>, Condition)>,
}

/// The type that goes by its conditions.
const CUSTOM: i32 = 1;

impl SelectorRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the selector body, texts as executed.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        rules.not_blank("pluginId", self.plugin_id.as_deref());
        rules.not_blank("name", self.name.as_deref());
        rules.not_null("type", self.selector_type.as_ref());
        rules.not_null("sort", self.sort.as_ref());
        rules.range("sort", self.sort, 1, 1000);
        rules.not_null("enabled", self.enabled.as_ref());
        rules.not_null("loged", self.logged.as_ref());
        rules.not_null("continued", self.continued.as_ref());
        rules.not_null("matchRestful", self.match_restful.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
    }

    /// The selector that the body names, if it names one.
    #[must_use]
    pub(crate) fn id(&self) -> Option<&str> {
        filled(self.id.as_deref())
    }

    /// The rules that bind several members, checked after the field rules held.
    ///
    /// # Errors
    /// The first text that applies. Those about `type` are the reference's; that `type` is 0 or 1
    /// and that the list is never null is ours (the reference fails inside on a null list).
    pub(crate) fn draft(&self) -> Result<SelectorDraft, String> {
        let selector_type = self.selector_type.unwrap_or_default();
        if !(0..=CUSTOM).contains(&selector_type) {
            return Err(format!("type: {selector_type} is none; expected 0 (full) or 1 (custom)"));
        }
        let custom = selector_type == CUSTOM;
        if custom {
            self.check_custom()?;
        }
        let Some(conditions) = self.selector_conditions.as_deref() else {
            return Err(
                "selectorConditions: null is no list; expected the conditions, [] for none"
                    .to_owned(),
            );
        };
        let match_mode = if custom { self.match_mode.unwrap_or_default() } else { 0 };
        if !(0..=1).contains(&match_mode) {
            return Err(format!("matchMode: {match_mode} is none; expected 0 (and) or 1 (or)"));
        }
        Ok(SelectorDraft {
            plugin_id: self.plugin_id.clone().unwrap_or_default(),
            namespace_id: self.namespace_id.clone().unwrap_or_default(),
            name: self.name.clone().unwrap_or_default(),
            selector_type,
            match_mode,
            sort: self.sort.unwrap_or_default(),
            enabled: self.enabled.unwrap_or_default(),
            logged: self.logged.unwrap_or_default(),
            continued: self.continued.unwrap_or_default(),
            match_restful: self.match_restful.unwrap_or_default(),
            handle: self.handle.clone(),
            conditions: conditions.iter().map(|c| (c.id.clone(), c.to_condition())).collect(),
        })
    }

    fn check_custom(&self) -> Result<(), String> {
        if self.match_mode.is_none() {
            return Err("if type is custom, matchMode is not null".to_owned());
        }
        let conditions = self.selector_conditions.as_deref().unwrap_or_default();
        if conditions.is_empty() {
            return Err("if type is custom, selectorConditions is not empty".to_owned());
        }
        for condition in conditions {
            if condition.param_type.as_deref().unwrap_or_default().is_empty() {
                return Err("if type is custom, paramType is not empty".to_owned());
            }
            if condition.param_name.as_deref().unwrap_or_default().is_empty() {
                return Err("if type is custom, paramName is not empty".to_owned());
            }
        }
        Ok(())
    }
}

impl RequestBody for SelectorRequest {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let mut tx = state.store().read().await?;
        if let Some(id) = self.id() {
            let found = repository::conditioned::find::<Selector>(&mut tx, id).await?.is_some();
            rules.exists("id", found, MISSING_SELECTOR);
        }
        let plugin_id = self.plugin_id.as_deref().unwrap_or_default();
        let plugin = repository::plugin::find(&mut tx, plugin_id).await?;
        rules.exists("pluginId", plugin.is_some(), "plugin is not existed");
        namespace_exists(&mut tx, self.namespace_id.as_deref(), rules).await
    }
}

// === impl SelectorDraft ===

impl SelectorDraft {
    /// Whether it goes by its conditions.
    #[must_use]
    pub(crate) const fn is_custom(&self) -> bool {
        self.selector_type == CUSTOM
    }

    /// The selector that is stored and synced.
    #[must_use]
    pub(crate) fn to_selector(&self, id: &str, plugin_name: &str) -> Selector {
        Selector {
            plugin_id: Some(self.plugin_id.clone()),
            plugin_name: plugin_name.to_owned(),
            match_mode: self.match_mode,
            selector_type: self.selector_type,
            logged: self.logged,
            continued: self.continued,
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
    /// selector's condition is not taken over.
    #[must_use]
    pub(crate) fn new_conditions(&self, own: &[String]) -> Vec<NewCondition> {
        keep_ids(&self.conditions, own)
    }
}

/// Which selectors a search is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelectorCondition {
    /// Text in the name; what follows a `!` must not be in it.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub keyword: Option<String>,
    /// Whether they are enabled.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub switch_status: Option<bool>,
    /// Ids of their plugins; none means any.
    pub plugin: Option<Vec<String>>,
    /// Their namespace.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

impl RequestBody for SearchRequest<SelectorCondition> {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let plugins = self.condition.as_ref().and_then(|narrow| narrow.plugin.as_deref());
        rules.max_ids("condition.plugin", plugins, MAX_FILTER_IDS);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
