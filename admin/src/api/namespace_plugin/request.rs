//! What the endpoints of a namespace's plugins take.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    error::ApiResult,
    extract::{FromQuery, JavaType, QueryArgs, RequestBody, Violations, lenient},
    page::{CURRENT_PAGE, PAGE_SIZE, PageQuery},
    state::AppState,
};

/// Which plugins of which namespace.
pub(super) struct PluginsQuery {
    pub(super) name: Option<String>,
    pub(super) enabled: Option<i32>,
    pub(super) namespace_id: String,
    pub(super) page: PageQuery,
}

impl FromQuery for PluginsQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("name", JavaType::String, false),
        ("enabled", JavaType::Integer, false),
        ("namespaceId", JavaType::String, true),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            name: args.filled("name"),
            enabled: args.integer("enabled")?,
            namespace_id: args.required("namespaceId")?,
            page: PageQuery::required(args)?,
        })
    }
}

/// The namespace whose active plugins are wanted.
pub(super) struct ActiveQuery {
    pub(super) namespace_id: String,
}

impl FromQuery for ActiveQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] =
        &[("namespaceId", JavaType::String, false)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        let namespace_id = args.filled("namespaceId");
        Ok(Self { namespace_id: namespace_id.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()) })
    }
}

/// The namespace whose linked templates are wanted.
pub(super) struct LinkedQuery {
    pub(super) namespace: String,
}

impl FromQuery for LinkedQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] =
        &[("namespace", JavaType::String, true)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { namespace: args.required("namespace")? })
    }
}

/// The link of the plugin that is to be sent again.
pub(super) struct LinkQuery {
    pub(super) id: String,
}

impl FromQuery for LinkQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[("id", JavaType::String, true)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { id: args.required("id")? })
    }
}

/// New settings of a plugin. Only `config`, `sort` and `enabled` are taken over.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsRequest {
    #[serde(default, deserialize_with = "lenient::opt_string")]
    plugin_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::opt_string")]
    name: Option<String>,
    /// Settings, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) config: Option<String>,
    /// Place in the chain, from 0.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub(super) sort: Option<i32>,
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub(super) enabled: Option<bool>,
    #[serde(default, deserialize_with = "lenient::opt_string")]
    namespace_id: Option<String>,
}

impl RequestBody for SettingsRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_blank("pluginId", self.plugin_id.as_deref());
        rules.not_blank("name", self.name.as_deref());
        rules.not_null("sort", self.sort.as_ref());
        rules.min("sort", self.sort, 0);
        rules.not_null("enabled", self.enabled.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        Ok(())
    }
}

/// The namespace that is to be sent again.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceSyncRequest {
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) namespace_id: Option<String>,
}

impl RequestBody for NamespaceSyncRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        Ok(())
    }
}
