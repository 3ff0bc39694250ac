//! What the endpoints of form fields take.

use longmen_db::repository::plugin_handle::NewPluginHandle;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    api::common::MAX_KEY_BYTES,
    error::{ApiError, ApiResult},
    extract::{FromQuery, JavaType, QueryArgs, RequestBody, Violations, lenient},
    page::{CURRENT_PAGE, PAGE_SIZE, PageQuery},
    state::AppState,
};

/// Which fields, and which page of them.
pub(super) struct HandleQuery {
    pub(super) plugin_id: Option<String>,
    pub(super) field: Option<String>,
    pub(super) page: PageQuery,
}

impl FromQuery for HandleQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("pluginId", JavaType::String, false),
        ("field", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            plugin_id: args.filled("pluginId"),
            field: args.filled("field"),
            page: PageQuery::required(args)?,
        })
    }
}

/// A form field to create or change.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HandleRequest {
    #[serde(default, deserialize_with = "lenient::opt_string")]
    plugin_id: Option<String>,
    /// Its name in the handle.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    field: Option<String>,
    /// Its caption.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    label: Option<String>,
    /// 1 number, 2 text, 3 choice.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    data_type: Option<i32>,
    /// 1 of selectors, 2 of rules, 3 of the plugin.
    #[serde(rename = "type", default, deserialize_with = "lenient::opt_i32")]
    handle_type: Option<i32>,
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    sort: Option<i32>,
    /// Whether it is required, its default and the like; JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    ext_obj: Option<String>,
}

impl RequestBody for HandleRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_blank("pluginId", self.plugin_id.as_deref());
        rules.not_blank("field", self.field.as_deref());
        rules.max_bytes("field", self.field.as_deref(), MAX_KEY_BYTES);
        rules.not_null("dataType", self.data_type.as_ref());
        rules.not_null("type", self.handle_type.as_ref());
        rules.not_null("sort", self.sort.as_ref());
        Ok(())
    }
}

impl HandleRequest {
    /// The field to store. Everything that is required is there: the rules have been checked.
    pub(super) fn into_new(self) -> ApiResult<NewPluginHandle> {
        let Self {
            plugin_id: Some(plugin_id),
            field: Some(field),
            label,
            data_type: Some(data_type),
            handle_type: Some(handle_type),
            sort: Some(sort),
            ext_obj,
        } = self
        else {
            return Err(ApiError::Unreadable);
        };
        Ok(NewPluginHandle { plugin_id, field, label, data_type, handle_type, sort, ext_obj })
    }
}
