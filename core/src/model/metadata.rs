//! Metadata: registered descriptions of APIs.

use serde::{Deserialize, Serialize};

use super::lenient;

/// A registered API: which protocol, service and method a path stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaData {
    /// The key of the object.
    #[serde(default, deserialize_with = "lenient::string")]
    pub id: String,
    /// Name of the application that registered it.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub app_name: Option<String>,
    /// Context path of that application; never stored by the reference.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub context_path: Option<String>,
    /// Exact path, or an Ant pattern when it contains `*`.
    #[serde(default, deserialize_with = "lenient::string")]
    pub path: String,
    /// Protocol: `http`, `dubbo`, `grpc`, …
    #[serde(default, deserialize_with = "lenient::string")]
    pub rpc_type: String,
    /// Service (interface) name.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub service_name: Option<String>,
    /// Method name.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub method_name: Option<String>,
    /// Parameter types, comma-joined.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub parameter_types: Option<String>,
    /// Protocol settings as JSON text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub rpc_ext: Option<String>,
    /// Whether it is looked up.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}
