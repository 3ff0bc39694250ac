//! Selectors in answers.

use longmen_core::model::{Selector, SelectorType};
use longmen_db::Tx;
use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::conditioned::Stored;
use longmen_db::repository::upstream;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;
use crate::api::conditioned::response::{CommonResponse, conditions};
use crate::api::discovery_upstream::response::{
    DiscoveryHandlerResponse, DiscoveryResponse, UpstreamResponse,
};
use crate::error::ApiResult;

/// A selector in an answer; lists leave conditions and upstreams null.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelectorResponse {
    #[serde(flatten)]
    common: CommonResponse,
    /// The plugin template it belongs to.
    plugin_id: String,
    /// 0 = every request, 1 = by conditions.
    #[serde(rename = "type")]
    selector_type: i32,
    /// `full` or `custom`.
    type_name: &'static str,
    /// Whether rules are matched after it.
    continued: bool,
    /// The conditions.
    selector_conditions: Option<Vec<ConditionResponse>>,
    /// How it uses its discovery, if it is bound.
    discovery_handler: Option<DiscoveryHandlerResponse>,
    /// Where its upstreams come from, if it is bound.
    #[serde(rename = "discoveryVO")]
    discovery: Option<DiscoveryResponse>,
    /// Its upstreams, if it is bound.
    discovery_upstreams: Option<Vec<UpstreamResponse>>,
    /// Always null.
    selector_rules: Option<()>,
    /// The namespace it belongs to.
    namespace_id: String,
}

impl SelectorResponse {
    /// A row of a list.
    #[must_use]
    pub(crate) fn listed(tx: &Tx, row: Stored<Selector>) -> Self {
        let common = CommonResponse::new(tx, &row);
        let selector = row.object;
        Self {
            common,
            type_name: match selector.kind() {
                SelectorType::Full => "full",
                SelectorType::Custom => "custom",
                SelectorType::Other => "",
            },
            plugin_id: selector.plugin_id.unwrap_or_default(),
            selector_type: selector.selector_type,
            continued: selector.continued,
            selector_conditions: None,
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
        let conditions = conditions::<Selector>(tx, &id).await?;
        let mut answer = Self { selector_conditions: Some(conditions), ..Self::listed(tx, row) };
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
