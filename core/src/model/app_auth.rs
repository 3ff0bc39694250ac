//! Application keys, and keys that stand for an AI provider's key.

use serde::{Deserialize, Serialize};

use super::lenient;

/// An application key with its secret and what it may reach.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppAuth {
    /// The key of the object.
    #[serde(default, deserialize_with = "lenient::string")]
    pub app_key: String,
    /// The secret that requests are signed with.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub app_secret: Option<String>,
    /// Whether the key may be used.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
    /// Whether paths are checked.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub open: bool,
    /// Parameters passed on per application; absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param_data_list: Option<Vec<AppParam>>,
    /// Paths that the key may reach; absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_data_list: Option<Vec<AppPath>>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}

// By hand, so that the secret reaches no log.
impl std::fmt::Debug for AppAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppAuth")
            .field("app_key", &self.app_key)
            .field("enabled", &self.enabled)
            .field("open", &self.open)
            .field("namespace_id", &self.namespace_id)
            .finish_non_exhaustive()
    }
}

/// A parameter that an application key carries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppParam {
    /// Name of the application.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub app_name: Option<String>,
    /// Its parameter, JSON text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub app_param: Option<String>,
}

/// A path that an application key may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppPath {
    /// Name of the application.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub app_name: Option<String>,
    /// Exact path or Ant pattern.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub path: Option<String>,
    /// Whether it counts.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
}

/// A key handed out to clients in place of an AI provider's key.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyApiKey {
    /// The provider's key.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub real_api_key: Option<String>,
    /// The key that clients send.
    #[serde(default, deserialize_with = "lenient::string")]
    pub proxy_api_key: String,
    /// Free text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub description: Option<String>,
    /// Whether it may be used.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
    /// The selector it is valid for.
    #[serde(default, deserialize_with = "lenient::string")]
    pub selector_id: String,
}

// By hand, so that neither key reaches a log.
impl std::fmt::Debug for ProxyApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyApiKey")
            .field("selector_id", &self.selector_id)
            .field("enabled", &self.enabled)
            .field("namespace_id", &self.namespace_id)
            .finish_non_exhaustive()
    }
}
