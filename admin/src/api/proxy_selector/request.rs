//! The body of bindings and of raw ports.

use longmen_db::repository;
use longmen_db::repository::proxy_selector::NewProxySelector;
use longmen_db::repository::upstream::{NewUpstream, Origin};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::common::{filled, namespace_exists};
use crate::api::discovery_upstream::address::check_upstream;
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

/// A binding of a selector to upstreams, or a raw port with its upstreams.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProxySelectorRequest {
    /// The proxy selector to change.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The selector to bind.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub selector_id: Option<String>,
    /// Name; the key of a raw port on a gateway.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub name: Option<String>,
    /// The plugin.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub plugin_name: Option<String>,
    /// The port that gateways open, for raw ports.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub forward_port: Option<i32>,
    /// `tcp` for raw ports; consoles send the plugin's name when binding.
    #[serde(rename = "type", default, deserialize_with = "lenient::opt_string")]
    pub proxy_type: Option<String>,
    /// Settings, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
    /// Where a registry keeps the instances.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub listener_node: Option<String>,
    /// How a registry's members map to upstream members, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub handler: Option<String>,
    /// The discovery to use or to create.
    pub discovery: Option<DiscoveryPart>,
    /// The upstreams, for discovery of type `local`.
    pub discovery_upstreams: Option<Vec<UpstreamPart>>,
    /// The namespace it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// The discovery of a [`ProxySelectorRequest`].
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiscoveryPart {
    /// A discovery that exists.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub discovery_type: Option<String>,
    /// Addresses of the registry.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub server_list: Option<String>,
    /// Settings of the registry, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
}

/// An upstream of a [`ProxySelectorRequest`].
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpstreamPart {
    /// Scheme with separator, such as `http://`.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub protocol: Option<String>,
    /// `host:port`.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub url: Option<String>,
    /// 0 = usable, 1 = down; absent means usable.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub status: Option<i32>,
    /// Share of the traffic; absent means none.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub weight: Option<i32>,
    /// Further settings, JSON text; absent means `{}`.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
    /// When it started, epoch milliseconds as text; read when a raw port is changed.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub startup_time: Option<String>,
}

impl ProxySelectorRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the proxy selector body; those on nested members are not
    /// checked there.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        rules.not_blank("name", self.name.as_deref());
        rules.not_blank("pluginName", self.plugin_name.as_deref());
        rules.not_blank("type", self.proxy_type.as_deref());
        rules.not_null("discovery", self.discovery.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
    }

    /// Checks the upstreams, after the field rules held.
    ///
    /// # Errors
    /// Position, field, value and expectation of the first fault.
    pub(crate) fn usable(&self) -> Result<(), String> {
        for (index, part) in self.discovery_upstreams.iter().flatten().enumerate() {
            check_upstream(
                part.url.as_deref().unwrap_or_default(),
                part.status.unwrap_or_default(),
                part.weight.unwrap_or_default(),
                part.props.as_deref(),
            )
            .map_err(|text| format!("discoveryUpstreams[{index}].{text}"))?;
        }
        Ok(())
    }

    /// The type of the discovery.
    #[must_use]
    pub(crate) fn discovery_type(&self) -> Option<&str> {
        self.discovery.as_ref()?.discovery_type.as_deref()
    }

    /// The upstreams that are stored; they start now.
    #[must_use]
    pub(crate) fn new_upstreams(&self) -> Vec<NewUpstream> {
        let namespace_id = self.namespace_id.as_deref().unwrap_or_default();
        let parts = self.discovery_upstreams.iter().flatten();
        parts.map(|part| part.to_new(namespace_id, None)).collect()
    }

    /// The upstreams that are stored, started when the request says.
    #[must_use]
    pub(crate) fn started_upstreams(&self) -> Vec<NewUpstream> {
        let namespace_id = self.namespace_id.as_deref().unwrap_or_default();
        let parts = self.discovery_upstreams.iter().flatten();
        parts
            .map(|part| {
                let started =
                    part.startup_time.as_deref().and_then(|text| text.trim().parse().ok());
                part.to_new(namespace_id, started)
            })
            .collect()
    }

    /// The raw port that is stored, of the given plugin.
    ///
    /// # Errors
    /// A port that is none, or settings that are no object of texts; both refusals are ours.
    pub(crate) fn new_port(&self, plugin_name: &str) -> Result<NewProxySelector, String> {
        let Some(port) = self.forward_port.filter(|port| (1..=65_535).contains(port)) else {
            let sent = self.forward_port.map_or_else(|| "null".to_owned(), |port| port.to_string());
            return Err(format!("forwardPort: {sent} is no port, expected one from 1 to 65535"));
        };
        let props = filled(self.props.as_deref());
        let readable = props.is_none_or(|text| {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
        });
        if !readable {
            return Err(format!(
                "props: {:?} is no JSON object, expected one such as {{\"loadBalance\":\"random\"}}",
                props.unwrap_or_default()
            ));
        }
        Ok(NewProxySelector {
            name: self.name.clone().unwrap_or_default(),
            plugin_name: plugin_name.to_owned(),
            proxy_type: self.proxy_type.clone(),
            forward_port: Some(port),
            props: props.map(str::to_owned),
            namespace_id: self.namespace_id.clone().unwrap_or_default(),
        })
    }
}

// === impl UpstreamPart ===

impl UpstreamPart {
    fn to_new(&self, namespace_id: &str, created_ms: Option<i64>) -> NewUpstream {
        NewUpstream {
            namespace_id: namespace_id.to_owned(),
            protocol: self.protocol.clone(),
            url: self.url.clone().unwrap_or_default(),
            status: self.status.unwrap_or_default(),
            weight: self.weight.unwrap_or_default(),
            props: filled(self.props.as_deref()).map(str::to_owned),
            origin: Origin::Configured,
            created_ms,
        }
    }
}

impl RequestBody for ProxySelectorRequest {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let mut tx = state.store().read().await?;
        if let Some(id) = filled(self.id.as_deref()) {
            let found = repository::proxy_selector::find(&mut tx, id).await?.is_some();
            rules.exists("id", found, "proxy selector not exited");
        }
        namespace_exists(&mut tx, self.namespace_id.as_deref(), rules).await
    }
}
