//! Bodies and rules of upstream writes.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::{Violations, lenient};

/// An upstream to create or change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpstreamRequest {
    /// The upstream to change; absent for a new one.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The discovery handler it belongs to.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub discovery_handler_id: Option<String>,
    /// The namespace it belongs to.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
    /// Scheme with separator, such as `http://`; absent means the plugin's default.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub protocol: Option<String>,
    /// `host:port`.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub url: Option<String>,
    /// 0 = usable, 1 = down.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub status: Option<i32>,
    /// Share of the traffic.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub weight: Option<i32>,
    /// Further settings, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
}

impl UpstreamRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the upstream body.
    pub fn rules(&self, rules: &mut Violations) {
        let handler = self.discovery_handler_id.as_deref();
        rules.not_blank_text("discoveryHandlerId", handler, "discoveryHandlerId can't be null");
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        rules.not_blank_text("url", self.url.as_deref(), "url can't be null");
        rules.not_null_text("status", self.status.as_ref(), "status can't be null");
        rules.not_null_text("weight", self.weight.as_ref(), "weight can't be null");
        rules.not_blank_text("props", self.props.as_deref(), "props can't be null");
    }
}
