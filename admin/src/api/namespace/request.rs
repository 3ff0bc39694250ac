//! What the namespace endpoints take.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    error::ApiResult,
    extract::{FromQuery, JavaType, QueryArgs, RequestBody, Violations, lenient},
    page::{CURRENT_PAGE, PAGE_SIZE, PageQuery},
    state::AppState,
};

/// Longest name and description, in characters.
const MAX_TEXT: usize = 255;

/// Which namespaces, and which page of them.
pub(super) struct NamespaceQuery {
    pub(super) namespace_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) page: PageQuery,
}

impl FromQuery for NamespaceQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("namespaceId", JavaType::String, false),
        ("name", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            namespace_id: args.filled("namespaceId"),
            name: args.filled("name"),
            page: PageQuery::required(args)?,
        })
    }
}

/// Which namespaces.
pub(super) struct NameQuery {
    pub(super) name: Option<String>,
}

impl FromQuery for NameQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] =
        &[("name", JavaType::String, false)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { name: args.filled("name") })
    }
}

/// A namespace to create (without `id`) or to change (by `namespaceId`).
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceRequest {
    /// Id of the row; its presence alone makes this a change.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) id: Option<String>,
    /// The id that everything else uses; made when absent.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) namespace_id: Option<String>,
    /// Its name, up to 255 characters.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) name: Option<String>,
    /// Free text, up to 255 characters.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) description: Option<String>,
}

impl RequestBody for NamespaceRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        const TOO_LONG: &str = "The maximum length is 255";
        let (name, description) = (self.name.as_deref(), self.description.as_deref());
        rules.not_blank_text("name", name, "namespace name not null");
        rules.max_length("name", name, MAX_TEXT, TOO_LONG);
        rules.not_null_text(
            "description",
            self.description.as_ref(),
            "namespace description not null",
        );
        rules.max_length("description", description, MAX_TEXT, TOO_LONG);
        Ok(())
    }
}
