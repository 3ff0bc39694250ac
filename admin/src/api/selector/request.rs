//! Bodies and rules of selector writes.

use longmen_core::model::Selector;
use longmen_db::repository;

use crate::api::common::{MISSING_SELECTOR, namespace_exists};
use crate::api::conditioned::request::{CommonDraft, ObjectRequest as _, narrow, object_request};
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

object_request! {
    /// A selector to create, or the new state of one. Its `matchMode` is needed when `type` is 1, and
    /// its `sort` is from 1 to 1000.
    SelectorRequest {
        /// The plugin template it belongs to.
        #[serde(default, deserialize_with = "lenient::opt_string")]
        pub plugin_id: Option<String>,
        /// 0 = every request, 1 = by conditions.
        #[serde(rename = "type", default, deserialize_with = "lenient::opt_i32")]
        pub selector_type: Option<i32>,
        /// Whether rules are matched after it.
        #[serde(default, deserialize_with = "lenient::opt_bool")]
        pub continued: Option<bool>,
    }
    /// The conditions; all of them are replaced. Never null: `[]` for none.
    selector_conditions
}

/// A request whose required members are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectorDraft {
    /// What rules have too; the match mode is always 0 when every request is taken.
    pub common: CommonDraft,
    /// The plugin template.
    pub plugin_id: String,
    /// 0 = every request, 1 = by conditions.
    pub selector_type: i32,
    /// Whether rules are matched after it.
    pub continued: bool,
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
        if self.selector_conditions.is_none() {
            return Err(
                "selectorConditions: null is no list; expected the conditions, [] for none"
                    .to_owned(),
            );
        }
        let match_mode = if custom { self.match_mode.unwrap_or_default() } else { 0 };
        Ok(SelectorDraft {
            common: self.common(match_mode)?,
            plugin_id: self.plugin_id.clone().unwrap_or_default(),
            selector_type,
            continued: self.continued.unwrap_or_default(),
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
        let common = &self.common;
        Selector {
            plugin_id: Some(self.plugin_id.clone()),
            plugin_name: plugin_name.to_owned(),
            match_mode: common.match_mode,
            selector_type: self.selector_type,
            logged: common.logged,
            continued: self.continued,
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
    /// Which selectors a search is for.
    SelectorCondition
    /// Ids of their plugins; none means any.
    plugin as "condition.plugin"
}

#[cfg(test)]
mod tests;
