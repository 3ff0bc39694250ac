//! The body of bindings and of raw ports.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::{Violations, lenient};

/// A binding of a selector to upstreams, or a raw port with its upstreams.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxySelectorRequest {
    /// The proxy selector to change.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The selector to bind.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub selector_id: Option<String>,
    /// Name; the key of a raw port on a gateway.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub name: Option<String>,
    /// The plugin.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub plugin_name: Option<String>,
    /// The port that gateways open, for raw ports.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub forward_port: Option<i32>,
    /// `tcp` for raw ports; consoles send the plugin's name when binding.
    #[serde(rename = "type", deserialize_with = "lenient::opt_string")]
    pub proxy_type: Option<String>,
    /// Settings, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
    /// Where a registry keeps the instances.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub listener_node: Option<String>,
    /// How a registry's members map to upstream members, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub handler: Option<String>,
    /// The discovery to use or to create.
    pub discovery: Option<DiscoveryPart>,
    /// The upstreams, for discovery of type `local`.
    pub discovery_upstreams: Option<Vec<UpstreamPart>>,
    /// The namespace it belongs to.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// The discovery of a [`ProxySelectorRequest`].
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoveryPart {
    /// A discovery that exists.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub discovery_type: Option<String>,
    /// Addresses of the registry.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub server_list: Option<String>,
    /// Settings of the registry, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
}

/// An upstream of a [`ProxySelectorRequest`].
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpstreamPart {
    /// Scheme with separator, such as `http://`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub protocol: Option<String>,
    /// `host:port`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub url: Option<String>,
    /// 0 = usable, 1 = down; absent means usable.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub status: Option<i32>,
    /// Share of the traffic; absent means none.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub weight: Option<i32>,
    /// Further settings, JSON text; absent means `{}`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
    /// When it started, epoch milliseconds as text; read when a raw port is changed.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub startup_time: Option<String>,
}

impl ProxySelectorRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the proxy selector body; those on nested members are not
    /// checked there.
    pub fn rules(&self, rules: &mut Violations) {
        rules.not_blank("name", self.name.as_deref());
        rules.not_blank("pluginName", self.plugin_name.as_deref());
        rules.not_blank("type", self.proxy_type.as_deref());
        rules.not_null("discovery", self.discovery.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
    }
}
