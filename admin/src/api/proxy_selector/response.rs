//! Raw ports in answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::discovery_upstream::response::UpstreamResponse;

/// A raw port with its discovery and upstreams.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxySelectorResponse {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The port that gateways open.
    pub forward_port: Option<i32>,
    /// `tcp`.
    #[serde(rename = "type")]
    pub proxy_type: Option<String>,
    /// Where a registry keeps the instances.
    pub listener_node: Option<String>,
    /// How a registry's members map to upstream members, JSON text.
    pub handler: Option<String>,
    /// The discovery handler of its upstreams.
    pub discovery_handler_id: Option<String>,
    /// When it was stored, ISO 8601 with zone.
    pub create_time: String,
    /// When it was last changed, ISO 8601 with zone.
    pub update_time: String,
    /// Settings, JSON text.
    pub props: Option<String>,
    /// The namespace it belongs to.
    pub namespace_id: String,
    /// Where its upstreams come from.
    pub discovery: Option<ProxyDiscoveryResponse>,
    /// Its upstreams.
    pub discovery_upstreams: Option<Vec<UpstreamResponse>>,
}

/// A discovery as raw ports show it: other member names than elsewhere.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyDiscoveryResponse {
    /// Its id.
    pub id: String,
    /// `0` = of one selector, `1` = of a plugin, `2` = of all.
    pub level: String,
    /// Its name.
    pub name: Option<String>,
    /// The plugin.
    pub plugin_name: Option<String>,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    #[serde(rename = "type")]
    pub discovery_type: String,
    /// Addresses of the registry.
    pub server_list: Option<String>,
    /// Settings of the registry, JSON text.
    pub props: Option<String>,
    /// Always null, as the reference answers it.
    pub namespace_id: Option<String>,
    /// Always null.
    pub discovery_handler: Option<()>,
    /// Always null.
    pub discovery_rel: Option<()>,
}
