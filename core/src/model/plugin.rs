//! Plugins as configured in a namespace.

use serde::{Deserialize, Serialize};

use super::lenient;

/// A plugin of one namespace: whether it runs, where in the chain, and with which settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plugin {
    /// Settings as JSON text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub config: Option<String>,
    /// Category shown by consoles; `Authentication` makes an unknown plugin a guard.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub role: Option<String>,
    /// Base64 of an uploaded jar, empty without one. Carried, never run.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub plugin_jar: Option<String>,
    /// Id of the plugin template.
    #[serde(default, deserialize_with = "lenient::string")]
    pub id: String,
    /// The key of the object: `divide`, `waf`, …
    #[serde(default, deserialize_with = "lenient::string")]
    pub name: String,
    /// Whether the plugin runs.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
    /// Place in the chain, ascending; absent means the plugin's own order.
    #[serde(
        default,
        deserialize_with = "lenient::opt_i32",
        skip_serializing_if = "Option::is_none"
    )]
    pub sort: Option<i32>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}

/// What happens when a plugin cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginClass {
    /// Decides who gets in: if it cannot run, the requests it was meant for are refused.
    Guard,
    /// Changes requests or responses: if it cannot run, it is left out.
    Transform,
    /// Sends requests to upstreams.
    Proxy,
    /// Watches: if it cannot run, it is left out.
    Observe,
}

impl PluginClass {
    /// The class of a plugin that this build does not know, from the role in its row.
    #[must_use]
    pub fn of_unknown(role: Option<&str>) -> Self {
        match role {
            Some(role) if role.trim().eq_ignore_ascii_case("Authentication") => Self::Guard,
            Some(role) if role.trim().eq_ignore_ascii_case("Logging") => Self::Observe,
            Some(role) if role.trim().eq_ignore_ascii_case("Proxy") => Self::Proxy,
            _ => Self::Transform,
        }
    }
}
