//! Metadata in answers.

use serde::Serialize;
use utoipa::ToSchema;

/// Metadata in an answer. All members are null where none has the id that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetaDataResponse {
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
