//! Metadata in answers.

use longmen_db::Tx;
use longmen_db::repository::meta_data::MetaDataRow;
use serde::Serialize;
use utoipa::ToSchema;

/// Metadata in an answer. All members are null where none has the id that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetaDataResponse {
    /// Name of the application.
    pub app_name: Option<String>,
    /// The path.
    pub path: Option<String>,
    /// What the path does.
    pub path_desc: Option<String>,
    /// Protocol.
    pub rpc_type: Option<String>,
    /// Service name.
    pub service_name: Option<String>,
    /// Method name.
    pub method_name: Option<String>,
    /// Parameter types, comma-joined.
    pub parameter_types: Option<String>,
    /// Protocol settings, JSON text.
    pub rpc_ext: Option<String>,
    /// Its id.
    pub id: Option<String>,
    /// When it was stored, `yyyy-MM-dd HH:mm:ss`.
    pub date_created: Option<String>,
    /// When it was last changed, `yyyy-MM-dd HH:mm:ss`.
    pub date_updated: Option<String>,
    /// Whether it is looked up.
    pub enabled: Option<bool>,
    /// The namespace it belongs to; the reference leaves it null.
    pub namespace_id: Option<String>,
}

impl MetaDataResponse {
    /// Stored metadata.
    #[must_use]
    pub(crate) fn new(tx: &Tx, row: MetaDataRow) -> Self {
        let MetaDataRow { meta_data, path_desc, created_ms, updated_ms } = row;
        Self {
            app_name: meta_data.app_name,
            path: Some(meta_data.path),
            path_desc,
            rpc_type: Some(meta_data.rpc_type),
            service_name: meta_data.service_name,
            method_name: meta_data.method_name,
            parameter_types: meta_data.parameter_types,
            rpc_ext: meta_data.rpc_ext,
            id: Some(meta_data.id),
            date_created: Some(tx.date_text(created_ms)),
            date_updated: Some(tx.date_text(updated_ms)),
            enabled: Some(meta_data.enabled),
            namespace_id: meta_data.namespace_id,
        }
    }
}
