//! Discoveries and upstreams in answers.

use longmen_db::repository::{binding::HandlerRow, discovery::DiscoveryRow, upstream::UpstreamRow};
use serde::Serialize;
use utoipa::ToSchema;

/// An upstream in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpstreamResponse {
    /// Row id; changes on every edit of the list.
    pub id: String,
    /// The discovery handler it belongs to.
    pub discovery_handler_id: String,
    /// Scheme with separator.
    pub protocol: Option<String>,
    /// `host:port`.
    pub url: String,
    /// 0 = usable, 1 = down.
    pub status: i32,
    /// Share of the traffic.
    pub weight: i32,
    /// Further settings, JSON text.
    pub props: Option<String>,
    /// When it was stored, epoch milliseconds as text.
    pub startup_time: String,
}

/// A discovery in an answer: where upstreams come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoveryResponse {
    /// Its id.
    pub id: String,
    /// Its name.
    pub discovery_name: Option<String>,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    pub discovery_type: String,
    /// `0` = of one selector, `1` = of a plugin, `2` = of all.
    pub level: String,
    /// Addresses of the registry.
    pub server_list: Option<String>,
    /// The plugin.
    pub plugin_name: Option<String>,
    /// Settings of the registry, JSON text.
    pub props: Option<String>,
    /// The namespace it belongs to.
    pub namespace_id: Option<String>,
    /// Always null.
    pub discovery_handler: Option<()>,
    /// Always null.
    pub discovery_rel: Option<()>,
}

/// A discovery handler in an answer: how one selector uses a discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoveryHandlerResponse {
    /// Its id.
    pub id: String,
    /// The discovery.
    pub discovery_id: String,
    /// How a registry's members map to upstream members, JSON text.
    pub handler: String,
    /// Where the registry keeps the instances.
    pub listener_node: Option<String>,
    /// Always null, as the reference answers it although it stores a value.
    pub props: Option<String>,
}

impl From<UpstreamRow> for UpstreamResponse {
    fn from(row: UpstreamRow) -> Self {
        Self {
            id: row.id,
            discovery_handler_id: row.discovery_handler_id,
            protocol: row.protocol,
            url: row.upstream_url,
            status: row.upstream_status,
            weight: row.weight,
            props: row.props,
            startup_time: row.created_ms.to_string(),
        }
    }
}

impl From<DiscoveryRow> for DiscoveryResponse {
    fn from(row: DiscoveryRow) -> Self {
        Self {
            id: row.id,
            discovery_name: Some(row.discovery_name),
            discovery_type: row.discovery_type,
            level: row.discovery_level,
            server_list: row.server_list,
            plugin_name: row.plugin_name,
            props: row.props,
            namespace_id: Some(row.namespace_id),
            discovery_handler: None,
            discovery_rel: None,
        }
    }
}

impl From<HandlerRow> for DiscoveryHandlerResponse {
    fn from(row: HandlerRow) -> Self {
        Self {
            id: row.id,
            discovery_id: row.discovery_id,
            handler: row.handler,
            listener_node: row.listener_node,
            props: None,
        }
    }
}
