//! Bodies of registering clients. Both SDKs' forms are read: the Go SDK sends texts throughout.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Kind;
use crate::api::common::{MAX_KEY_BYTES, filled};
use crate::api::discovery_upstream::address::check_upstream;
use crate::error::{ApiError, ApiResult};
use crate::extract::{RequestBody, Violations, lenient, too_long};
use crate::registration::Instance;
use crate::state::AppState;

/// An API of a service: one method, or all below a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MetaDataRegister {
    /// Name of the application; `host:port` for some protocols.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub app_name: Option<String>,
    /// The path that all APIs of the application are below, such as `/orders`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub context_path: Option<String>,
    /// The whole path; may contain `{variable}` or `**`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub path: Option<String>,
    /// Free text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub path_desc: Option<String>,
    /// `http`, `websocket`, `grpc`, `dubbo`, `sofa` or `tars`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub rpc_type: Option<String>,
    /// The class or interface.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub service_name: Option<String>,
    /// The method; absent for a whole class.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub method_name: Option<String>,
    /// Name of the rule; usually the path.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub rule_name: Option<String>,
    /// Types of the parameters, separated by commas.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub parameter_types: Option<String>,
    /// Settings of the protocol, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub rpc_ext: Option<String>,
    /// Whether the description is in force; what is made for it is, always.
    #[serde(deserialize_with = "lenient::opt_bool")]
    pub enabled: Option<bool>,
    /// Whether a description is stored, for protocols that do not need one.
    #[serde(deserialize_with = "lenient::opt_bool")]
    pub register_meta_data: Option<bool>,
    /// Whether the context path is put before the path that goes to the instance.
    #[serde(deserialize_with = "lenient::opt_bool")]
    pub add_prefixed: Option<bool>,
    /// The namespace; the default one if absent.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// Tools of a service for language models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpRegister {
    /// The API behind the tools.
    #[serde(rename = "metaDataRegisterDTO", default)]
    pub meta_data: Option<MetaDataRegister>,
    /// The namespace; that of the API if absent.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
    /// The settings of the rule, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub mcp_config: Option<String>,
}

/// Where a service says that its instances are to be found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DiscoveryRegister {
    /// The name of the selector: the context path.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub selector_name: Option<String>,
    /// The name of the source.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub name: Option<String>,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub discovery_type: Option<String>,
    /// Addresses of the source.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub server_list: Option<String>,
    /// What is watched in the source.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub listener_node: Option<String>,
    /// How members of the source are renamed, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub handler: Option<String>,
    /// The plugin of the selector.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub plugin_name: Option<String>,
    /// Settings of the source.
    #[schema(value_type = Object)]
    pub props: Option<serde_json::Map<String, serde_json::Value>>,
    /// The namespace; the default one if absent.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

/// An instance of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UriRegister {
    /// Scheme with separator, such as `http://`; absent where the plugin has only one.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub protocol: Option<String>,
    /// Name of the application.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub app_name: Option<String>,
    /// The path that all APIs of the application are below.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub context_path: Option<String>,
    /// `http`, `websocket`, `grpc`, `dubbo`, `sofa` or `tars`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub rpc_type: Option<String>,
    /// Host or address.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub host: Option<String>,
    /// Port.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub port: Option<i32>,
    /// `REGISTER` (also if absent), `HEARTBEAT` or `OFFLINE`; `UPDATED`, `DELETED` and `IGNORED` do
    /// nothing.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub event_type: Option<String>,
    /// The namespace; the default one if absent.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
    /// The machine, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub instance_info: Option<String>,
}

/// What an instance says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventType {
    Register,
    Updated,
    Deleted,
    Ignored,
    Offline,
    Heartbeat,
}

/// An API whose required members are there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Api<'a> {
    /// Name of the application.
    pub(super) app_name: &'a str,
    /// The context path, not empty if there is one.
    pub(super) context_path: Option<&'a str>,
    /// The path.
    pub(super) path: &'a str,
    /// Name of the rule.
    pub(super) rule_name: &'a str,
    /// The protocol.
    pub(super) kind: Kind,
    /// The namespace.
    pub(super) namespace_id: &'a str,
}

// === impl MetaDataRegister ===

impl MetaDataRegister {
    /// The members that there must be.
    ///
    /// # Errors
    /// The refusal of the first that is missing or too long.
    pub(super) fn api(&self) -> ApiResult<Api<'_>> {
        let context_path = self.context_path.as_deref().filter(|path| !path.is_empty());
        if let Some(path) = context_path {
            bounded("contextPath", path)?;
        }
        if let Some(service) = &self.service_name {
            bounded("serviceName", service)?;
        }
        Ok(Api {
            app_name: required("appName", self.app_name.as_deref())?,
            context_path,
            path: required("path", self.path.as_deref())?,
            rule_name: required("ruleName", self.rule_name.as_deref())?,
            kind: kind(self.rpc_type.as_deref())?,
            namespace_id: namespace(self.namespace_id.as_deref())?,
        })
    }
}

impl Api<'_> {
    /// The name of its selector.
    pub(super) fn selector_name(&self) -> String {
        selector_name(self.context_path.unwrap_or(self.app_name))
    }
}

impl RequestBody for MetaDataRegister {
    /// What is missing is no fault for the caller to see: it is left out and answered `success`.
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

impl RequestBody for McpRegister {
    /// See [`MetaDataRegister`].
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

impl RequestBody for DiscoveryRegister {
    /// See [`MetaDataRegister`].
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

// === impl UriRegister ===

impl UriRegister {
    /// What the instance says; `absent` where it does not say.
    ///
    /// # Errors
    /// Field, value and expectation.
    pub(super) fn event(&self, absent: EventType) -> Result<EventType, String> {
        event(self.event_type.as_deref(), absent)
    }

    /// The instance, and its protocol.
    ///
    /// # Errors
    /// The refusal of what is missing or no address.
    pub(super) fn instance(&self) -> ApiResult<(Kind, Instance)> {
        let kind = kind(self.rpc_type.as_deref())?;
        let context_path = required("contextPath", self.context_path.as_deref())?;
        let host = required("host", self.host.as_deref())?.trim();
        let port = self.port.unwrap_or_default();
        // An address of version 6 goes in brackets.
        let url = if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        };
        check_upstream(&url, 0, 0, None).map_err(ApiError::refused)?;
        let instance = Instance {
            namespace_id: namespace(self.namespace_id.as_deref())?.to_owned(),
            plugin: kind.plugin(),
            selector: selector_name(context_path),
            url,
        };
        Ok((kind, instance))
    }

    /// The scheme with separator, if there is one.
    pub(super) fn scheme(&self) -> Option<&str> {
        filled(self.protocol.as_deref())
    }
}

impl RequestBody for UriRegister {
    /// See [`MetaDataRegister`].
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

/// What an event means; `absent` where there is none.
///
/// # Errors
/// Field, value and expectation.
pub(super) fn event(text: Option<&str>, absent: EventType) -> Result<EventType, String> {
    Ok(match filled(text) {
        None => absent,
        Some("REGISTER") => EventType::Register,
        Some("UPDATED") => EventType::Updated,
        Some("DELETED") => EventType::Deleted,
        Some("IGNORED") => EventType::Ignored,
        Some("OFFLINE") => EventType::Offline,
        Some("HEARTBEAT") => EventType::Heartbeat,
        Some(other) => {
            return Err(format!(
                "eventType: {:?} is none, expected REGISTER, UPDATED, DELETED, IGNORED, OFFLINE or \
                 HEARTBEAT",
                other.chars().take(64).collect::<String>()
            ));
        }
    })
}

/// A name with one slash before it. The reference adds it to metadata only, so that an instance with
/// a context path without one never finds its selector.
pub(super) fn selector_name(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/{name}") }
}

/// A text that must be there, short enough to find rows by.
///
/// # Errors
/// Field, value and expectation.
pub(super) fn required<'a>(field: &str, text: Option<&'a str>) -> ApiResult<&'a str> {
    let Some(text) = filled(text) else {
        return Err(ApiError::refused(format!("{field}: is blank, expected a text")));
    };
    bounded(field, text)?;
    Ok(text)
}

fn bounded(field: &str, text: &str) -> ApiResult<()> {
    if text.len() > MAX_KEY_BYTES {
        return Err(ApiError::refused(format!("{field}: {}", too_long(text, MAX_KEY_BYTES))));
    }
    Ok(())
}

/// Only what is absent means the default namespace; a blank one is a fault.
pub(super) fn namespace(id: Option<&str>) -> ApiResult<&str> {
    match id {
        None => Ok(DEFAULT_NAMESPACE),
        Some(_) => required("namespaceId", id),
    }
}

fn kind(rpc_type: Option<&str>) -> ApiResult<Kind> {
    let text = required("rpcType", rpc_type)?;
    Kind::parse(text).ok_or_else(|| {
        ApiError::refused(format!(
            "rpcType: {:?} is not served, expected {}",
            text.chars().take(64).collect::<String>(),
            Kind::WORDS
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn uri(members: Value) -> UriRegister {
        serde_json::from_value(members).unwrap()
    }

    #[test]
    fn an_instance_is_read_from_both_sdks() {
        let java = uri(json!({"protocol": "http://", "appName": "orders", "contextPath": "/http",
            "rpcType": "http", "host": "10.0.0.11", "port": 8189, "eventType": "REGISTER"}));
        let go = uri(json!({"protocol": "http://", "appName": "orders", "contextPath": "http",
            "rpcType": "http", "host": "10.0.0.11", "port": "8189"}));
        let (kind, instance) = java.instance().unwrap();
        assert_eq!((kind, instance.url.as_str()), (Kind::Http, "10.0.0.11:8189"));
        assert_eq!(go.instance().unwrap().1, instance);
        assert_eq!(instance.namespace_id, DEFAULT_NAMESPACE);
        assert_eq!(go.event(EventType::Register), Ok(EventType::Register));
        let six = uri(json!({"contextPath": "/a", "rpcType": "grpc", "host": "::1", "port": 1}));
        assert_eq!(six.instance().unwrap().1.url, "[::1]:1");
    }

    #[test]
    fn what_is_missing_is_named() {
        let whole = json!({"contextPath": "/a", "rpcType": "http", "host": "h", "port": 1});
        for (member, value, told) in [
            ("contextPath", json!(" "), "contextPath: is blank, expected a text"),
            ("host", Value::Null, "host: is blank, expected a text"),
            ("namespaceId", json!(""), "namespaceId: is blank, expected a text"),
            (
                "rpcType",
                json!("springCloud"),
                "rpcType: \"springCloud\" is not served, expected http, websocket, grpc, dubbo, \
                 sofa or tars",
            ),
            (
                "port",
                json!(0),
                "url: \"h:0\" is no address, expected host:port with a port from 1 to 65535",
            ),
        ] {
            let mut body = whole.clone();
            body[member] = value;
            assert_eq!(uri(body).instance().unwrap_err().client_message(), told);
        }
        let told = uri(json!({"eventType": "GONE"})).event(EventType::Register).unwrap_err();
        assert!(told.starts_with("eventType: \"GONE\" is none"), "{told}");
    }
}
