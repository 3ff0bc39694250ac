//! What the endpoints of a namespace's plugins answer.

use longmen_db::{
    Tx,
    repository::{namespace_plugin::NamespacePluginRow, plugin::PluginRow},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::{plugin_handle::PluginHandleResponse, plugin_template::PluginDataResponse};

/// A plugin of a namespace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespacePluginResponse {
    /// Id of the link; null in the answer to a new link.
    id: Option<String>,
    role: String,
    name: String,
    /// Settings, JSON text.
    config: Option<String>,
    /// Place in the chain.
    sort: Option<i32>,
    enabled: bool,
    date_created: String,
    date_updated: String,
    /// Always empty.
    file: &'static str,
    /// Always null.
    plugin_handle_list: Option<Vec<PluginHandleResponse>>,
    /// Id of the plugin in the catalogue.
    plugin_id: String,
    namespace_id: String,
    /// Id of the link again, in lists only.
    plugin_rel_id: Option<String>,
    /// Base64 of an uploaded jar.
    plugin_jar: Option<String>,
}

impl NamespacePluginResponse {
    /// As lists show it.
    pub(super) fn listed(row: NamespacePluginRow, tx: &Tx) -> Self {
        Self { plugin_rel_id: Some(row.id.clone()), ..Self::shown(row, tx) }
    }

    /// By itself.
    pub(super) fn shown(row: NamespacePluginRow, tx: &Tx) -> Self {
        Self {
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
            id: Some(row.id),
            role: row.role,
            name: row.name,
            config: row.config,
            sort: row.sort,
            enabled: row.enabled,
            file: "",
            plugin_handle_list: None,
            plugin_id: row.plugin_id,
            namespace_id: row.namespace_id,
            plugin_rel_id: None,
            plugin_jar: row.plugin_jar.filter(|jar| !jar.is_empty()),
        }
    }

    /// Just linked: made of the template, without the ids of the link.
    pub(super) fn just_linked(template: PluginRow, namespace_id: String, tx: &Tx) -> Self {
        let now = tx.date_text(tx.now_ms());
        Self {
            id: None,
            role: template.role,
            name: template.name,
            config: template.config,
            sort: template.sort,
            enabled: template.enabled,
            date_created: now.clone(),
            date_updated: now,
            file: "",
            plugin_handle_list: None,
            plugin_id: template.id,
            namespace_id,
            plugin_rel_id: None,
            plugin_jar: template.plugin_jar.filter(|jar| !jar.is_empty()),
        }
    }
}

/// As gateways know it.
pub(super) fn data(row: NamespacePluginRow) -> PluginDataResponse {
    PluginDataResponse {
        id: row.plugin_id,
        name: row.name,
        enabled: row.enabled,
        sort: row.sort,
        namespace_id: Some(row.namespace_id),
        config: row.config,
        role: row.role,
        plugin_jar: row.plugin_jar.unwrap_or_default(),
    }
}
