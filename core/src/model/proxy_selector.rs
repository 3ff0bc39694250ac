//! Proxy selectors: raw ports of the tcp plugin, and the binding of a selector to a discovery.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient;

/// A raw port, or for ordinary selectors the announcement that upstreams follow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxySelector {
    /// Id of the proxy selector, or of the ordinary selector.
    #[serde(default, deserialize_with = "lenient::string")]
    pub id: String,
    /// The key of the object in a gateway.
    #[serde(default, deserialize_with = "lenient::string")]
    pub name: String,
    /// `tcp` for raw ports.
    #[serde(default, deserialize_with = "lenient::string")]
    pub plugin_name: String,
    /// `tcp` for raw ports, absent otherwise.
    #[serde(
        rename = "type",
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub proxy_type: Option<String>,
    /// The port to listen on.
    #[serde(
        default,
        deserialize_with = "lenient::opt_i32",
        skip_serializing_if = "Option::is_none"
    )]
    pub forward_port: Option<i32>,
    /// Settings; the only member of all records that is an object and not JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub props: Option<BTreeMap<String, serde_json::Value>>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}
