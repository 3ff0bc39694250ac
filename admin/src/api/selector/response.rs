//! Selectors in answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;
use crate::api::discovery_upstream::response::{
    DiscoveryHandlerResponse, DiscoveryResponse, UpstreamResponse,
};

/// A selector in an answer; lists leave conditions and upstreams null.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectorResponse {
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
