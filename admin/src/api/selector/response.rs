//! Selectors in answers.

use longmen_core::model::{Level, Selector, SelectorType};
use longmen_db::Tx;
use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::conditioned::{self, Stored};
use longmen_db::repository::upstream;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;
use crate::api::discovery_upstream::response::{
    DiscoveryHandlerResponse, DiscoveryResponse, UpstreamResponse,
};
use crate::error::ApiResult;

/// A selector in an answer; lists leave conditions and upstreams null.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelectorResponse {
    /// Its id.
    pub id: String,
    /// The plugin template it belongs to.
    pub plugin_id: String,
    /// Its name.
    pub name: String,
    /// 0 = all conditions, 1 = any.
    pub match_mode: i32,
    /// `and` or `or`.
    pub match_mode_name: &'static str,
    /// 0 = every request, 1 = by conditions.
    #[serde(rename = "type")]
    pub selector_type: i32,
    /// `full` or `custom`.
    pub type_name: &'static str,
    /// Precedence, ascending.
    pub sort: i32,
    /// Whether it takes part in matching.
    pub enabled: bool,
    /// Whether a match is logged; the reference spells it so.
    #[serde(rename = "loged")]
    pub logged: bool,
    /// Whether rules are matched after it.
    pub continued: bool,
    /// Asks stock gateways not to cache its matches.
    pub match_restful: bool,
    /// Settings of the plugin, JSON text.
    pub handle: Option<String>,
    /// The conditions.
    pub selector_conditions: Option<Vec<ConditionResponse>>,
    /// When it was stored, `yyyy-MM-dd HH:mm:ss`.
    pub date_created: String,
    /// When it was last changed, `yyyy-MM-dd HH:mm:ss`.
    pub date_updated: String,
    /// How it uses its discovery, if it is bound.
    pub discovery_handler: Option<DiscoveryHandlerResponse>,
    /// Where its upstreams come from, if it is bound.
    #[serde(rename = "discoveryVO")]
    pub discovery: Option<DiscoveryResponse>,
    /// Its upstreams, if it is bound.
    pub discovery_upstreams: Option<Vec<UpstreamResponse>>,
    /// Always null.
    pub selector_rules: Option<()>,
    /// The namespace it belongs to.
    pub namespace_id: String,
}

impl SelectorResponse {
    /// A row of a list.
    #[must_use]
    pub(crate) fn listed(tx: &Tx, row: Stored<Selector>) -> Self {
        let Stored { object: selector, created_ms, updated_ms } = row;
        Self {
            match_mode_name: selector.mode().name(),
            type_name: match selector.kind() {
                SelectorType::Full => "full",
                SelectorType::Custom => "custom",
                SelectorType::Other => "",
            },
            id: selector.id,
            plugin_id: selector.plugin_id.unwrap_or_default(),
            name: selector.name.unwrap_or_default(),
            match_mode: selector.match_mode,
            selector_type: selector.selector_type,
            sort: selector.sort.unwrap_or_default(),
            enabled: selector.enabled,
            logged: selector.logged,
            continued: selector.continued,
            match_restful: selector.match_restful,
            handle: selector.handle,
            selector_conditions: None,
            date_created: tx.date_text(created_ms),
            date_updated: tx.date_text(updated_ms),
            discovery_handler: None,
            discovery: None,
            discovery_upstreams: None,
            selector_rules: None,
            namespace_id: selector.namespace_id.unwrap_or_default(),
        }
    }

    /// One selector with its conditions and, if it is bound, its upstreams.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn detailed(tx: &mut Tx, row: Stored<Selector>) -> ApiResult<Self> {
        let id = row.object.id.clone();
        let conditions = conditioned::conditions::<Selector>(tx, &id).await?;
        let mut answer = Self::listed(tx, row);
        answer.selector_conditions = Some(
            conditions
                .into_iter()
                .map(|row| ConditionResponse::new(tx, Level::Selector, row))
                .collect(),
        );
        if let Some(binding) = binding::find_of(tx, Bound::Selector(&id)).await? {
            let upstreams = upstream::of_handler(tx, &binding.handler.id).await?;
            answer.discovery_handler = Some(binding.handler.into());
            answer.discovery = Some(binding.discovery.into());
            answer.discovery_upstreams =
                Some(upstreams.into_iter().map(UpstreamResponse::from).collect());
        }
        Ok(answer)
    }
}
