//! Discoveries and upstreams in answers.

use serde::Serialize;
use utoipa::ToSchema;

/// An upstream in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamResponse {
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
pub struct DiscoveryResponse {
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
pub struct DiscoveryHandlerResponse {
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
