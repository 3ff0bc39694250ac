//! Upstreams of selectors.

use serde::{Deserialize, Serialize};

use super::lenient;

/// The upstreams of one selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamList {
    /// The selector they belong to.
    #[serde(default, deserialize_with = "lenient::string")]
    pub selector_id: String,
    /// Name of the plugin of that selector.
    #[serde(default, deserialize_with = "lenient::string")]
    pub plugin_name: String,
    /// Name of that selector.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub selector_name: Option<String>,
    /// The upstreams; absent when the selector goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_data_list: Option<Vec<Upstream>>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
    /// The discovery handler behind the list; rarely filled.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub discovery_handler_id: Option<String>,
}

impl UpstreamList {
    /// The upstreams, empty when absent.
    #[must_use]
    pub fn upstreams(&self) -> &[Upstream] {
        self.upstream_data_list.as_deref().unwrap_or_default()
    }
}

/// One target of a selector. Its identity is (protocol, url), never its row id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// Row id in the admin's database; changes on every edit.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub id: Option<String>,
    /// `yyyy-MM-dd HH:mm:ss` in the writer's zone; informational.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub date_created: Option<String>,
    /// As `date_created`.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub date_updated: Option<String>,
    /// The discovery handler that found it.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub discovery_handler_id: Option<String>,
    /// Scheme with separator: `http://`, `https://`, `ws://`; absent means the plugin's default.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub protocol: Option<String>,
    /// `host:port`, no scheme.
    #[serde(default, deserialize_with = "lenient::string")]
    pub url: String,
    /// 0 = usable, 1 = down; see [`Upstream::state`].
    #[serde(default, deserialize_with = "lenient::i32_or_default")]
    pub status: i32,
    /// Share of the traffic; 0 = none while another upstream has a weight.
    #[serde(default, deserialize_with = "lenient::i32_or_default")]
    pub weight: i32,
    /// Further settings as JSON text; see [`Upstream::properties`].
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub props: Option<String>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}

impl Upstream {
    /// Whether it may be chosen.
    #[must_use]
    pub const fn state(&self) -> UpstreamStatus {
        if self.status == 0 { UpstreamStatus::Up } else { UpstreamStatus::Down }
    }

    /// The settings inside `props`; what is absent or unreadable takes its default.
    #[must_use]
    pub fn properties(&self) -> UpstreamProps {
        let Some(text) = self.props.as_deref() else { return UpstreamProps::default() };
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// Whether an upstream may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpstreamStatus {
    /// Usable.
    Up,
    /// Not usable.
    Down,
}

/// What `props` of an upstream holds; all values may come as strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpstreamProps {
    /// Time over which the weight grows to its full value, in milliseconds.
    #[serde(deserialize_with = "lenient::i32_or_default")]
    pub warmup: i32,
    /// Part of a gray release: while any upstream is gray, only gray ones are used.
    #[serde(deserialize_with = "lenient::bool_or_default")]
    pub gray: bool,
    /// Whether health checks look at it.
    #[serde(deserialize_with = "lenient::bool_or_true")]
    pub health_check_enabled: bool,
}

impl Default for UpstreamProps {
    fn default() -> Self {
        Self { warmup: 10, gray: false, health_check_enabled: true }
    }
}
