//! The body of metadata writes.

use longmen_core::model::MetaData;
use longmen_db::repository;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::common::{MAX_KEY_BYTES, filled, namespace_exists};
use crate::error::ApiResult;
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

/// Metadata to create, or the new state of one.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaDataRequest {
    /// The metadata to change; absent or blank for new ones.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// Name of the application.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub app_name: Option<String>,
    /// Context path; travels with the change, but is not stored.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub context_path: Option<String>,
    /// The path, unique in its namespace.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub path: Option<String>,
    /// What the path does.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub path_desc: Option<String>,
    /// Protocol: `http`, `dubbo`, `grpc`, …
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub rpc_type: Option<String>,
    /// Service (interface) name.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub service_name: Option<String>,
    /// Method name.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub method_name: Option<String>,
    /// Parameter types, comma-joined.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub parameter_types: Option<String>,
    /// Protocol settings, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub rpc_ext: Option<String>,
    /// Whether it is looked up; only read when it is created.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub enabled: Option<bool>,
    /// The namespace it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

impl MetaDataRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the metadata body.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        rules.not_blank("appName", self.app_name.as_deref());
        rules.not_blank("path", self.path.as_deref());
        rules.max_bytes("path", self.path.as_deref(), MAX_KEY_BYTES);
        rules.not_blank("rpcType", self.rpc_type.as_deref());
        rules.not_blank("serviceName", self.service_name.as_deref());
        rules.max_bytes("serviceName", self.service_name.as_deref(), MAX_KEY_BYTES);
        rules.not_blank("methodName", self.method_name.as_deref());
        rules.not_null("enabled", self.enabled.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
    }

    /// The metadata that the body names, if it names one.
    #[must_use]
    pub(crate) fn id(&self) -> Option<&str> {
        filled(self.id.as_deref())
    }

    /// The description, empty when absent.
    #[must_use]
    pub(crate) fn description(&self) -> &str {
        self.path_desc.as_deref().unwrap_or_default()
    }

    /// The metadata that is stored and synced.
    #[must_use]
    pub(crate) fn to_meta_data(&self, id: &str, enabled: bool) -> MetaData {
        MetaData {
            id: id.to_owned(),
            app_name: self.app_name.clone(),
            context_path: None,
            path: self.path.clone().unwrap_or_default(),
            rpc_type: self.rpc_type.clone().unwrap_or_default(),
            service_name: self.service_name.clone(),
            method_name: self.method_name.clone(),
            parameter_types: self.parameter_types.clone(),
            rpc_ext: self.rpc_ext.clone(),
            enabled,
            namespace_id: self.namespace_id.clone(),
        }
    }
}

impl RequestBody for MetaDataRequest {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let mut tx = state.store().read().await?;
        if let Some(id) = self.id() {
            let found = repository::meta_data::find(&mut tx, id).await?.is_some();
            rules.exists("id", found, "meta data is not existed");
        }
        namespace_exists(&mut tx, self.namespace_id.as_deref(), rules).await
    }
}
