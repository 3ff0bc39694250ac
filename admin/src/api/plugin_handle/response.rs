//! What the endpoints of form fields answer.

use longmen_db::{
    Tx,
    repository::{
        dict::DictRow,
        plugin_handle::{NewPluginHandle, PluginHandleRow},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// A form field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PluginHandleResponse {
    id: String,
    plugin_id: String,
    field: String,
    label: Option<String>,
    data_type: i32,
    #[serde(rename = "type")]
    handle_type: i32,
    sort: i32,
    ext_obj: Option<String>,
    date_created: String,
    date_updated: String,
    /// What it is chosen from.
    dict_options: Option<Vec<DictResponse>>,
}

/// A row of the dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DictResponse {
    id: String,
    #[serde(rename = "type")]
    dict_type: String,
    dict_code: String,
    dict_name: String,
    dict_value: Option<String>,
    desc: Option<String>,
    sort: i32,
    enabled: bool,
    date_created: String,
    date_updated: String,
}

impl PluginHandleResponse {
    /// The field, with dates as the store `tx` belongs to writes them.
    pub(super) fn new(row: PluginHandleRow, options: Option<Vec<DictRow>>, tx: &Tx) -> Self {
        Self {
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
            dict_options: options.map(|options| {
                options.into_iter().map(|option| DictResponse::new(option, tx)).collect()
            }),
            id: row.id,
            plugin_id: row.plugin_id,
            field: row.field,
            label: row.label,
            data_type: row.data_type,
            handle_type: row.handle_type,
            sort: row.sort,
            ext_obj: row.ext_obj,
        }
    }
}

impl DictResponse {
    fn new(row: DictRow, tx: &Tx) -> Self {
        Self {
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
            id: row.id,
            dict_type: row.dict_type,
            dict_code: row.dict_code,
            dict_name: row.dict_name,
            dict_value: row.dict_value,
            desc: row.description,
            sort: row.sort,
            enabled: row.enabled,
        }
    }
}

/// A field as the history keeps it.
pub(super) fn history(field: &NewPluginHandle) -> Value {
    json!({
        "pluginId": field.plugin_id,
        "field": field.field,
        "label": field.label,
        "dataType": field.data_type,
        "type": field.handle_type,
        "sort": field.sort,
        "extObj": field.ext_obj,
    })
}
