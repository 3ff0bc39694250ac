//! Raw ports in answers.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use longmen_db::repository::binding::BindingRow;
use longmen_db::repository::discovery::DiscoveryRow;
use longmen_db::repository::proxy_selector::ProxySelectorRow;
use longmen_db::repository::upstream::UpstreamRow;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::discovery_upstream::response::UpstreamResponse;

/// A raw port with its discovery and upstreams.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProxySelectorResponse {
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
pub(crate) struct ProxyDiscoveryResponse {
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

impl ProxySelectorResponse {
    /// A raw port with what it is bound to; dates are shown in `zone`.
    #[must_use]
    pub(crate) fn new(
        zone: &TimeZone,
        row: ProxySelectorRow,
        bound: Option<(BindingRow, Vec<UpstreamRow>)>,
    ) -> Self {
        let mut answer = Self {
            id: row.id,
            name: row.name,
            forward_port: row.forward_port,
            proxy_type: row.proxy_type,
            listener_node: None,
            handler: None,
            discovery_handler_id: None,
            create_time: iso_text(row.created_ms, zone),
            update_time: iso_text(row.updated_ms, zone),
            props: row.props,
            namespace_id: row.namespace_id,
            discovery: None,
            discovery_upstreams: None,
        };
        if let Some((BindingRow { discovery, handler }, upstreams)) = bound {
            answer.listener_node = handler.listener_node;
            answer.handler = Some(handler.handler);
            answer.discovery_handler_id = Some(handler.id);
            answer.discovery = Some(discovery.into());
            answer.discovery_upstreams =
                Some(upstreams.into_iter().map(UpstreamResponse::from).collect());
        }
        answer
    }
}

impl From<DiscoveryRow> for ProxyDiscoveryResponse {
    fn from(row: DiscoveryRow) -> Self {
        Self {
            id: row.id,
            level: row.discovery_level,
            name: Some(row.discovery_name),
            plugin_name: row.plugin_name,
            discovery_type: row.discovery_type,
            server_list: row.server_list,
            props: row.props,
            namespace_id: None,
            discovery_handler: None,
            discovery_rel: None,
        }
    }
}

/// A time as `2024-06-22T20:25:14.359+08:00`.
fn iso_text(at_ms: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_milliseconds_and_zone() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        assert_eq!(iso_text(1_719_059_114_359, &zone), "2024-06-22T20:25:14.359+08:00");
        assert_eq!(iso_text(0, &TimeZone::UTC), "1970-01-01T00:00:00.000+00:00");
    }
}
