//! Descriptions of APIs that services register for people.

use longmen_db::repository::api_doc::{self, ApiDoc};
use md5::{Digest, Md5};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Kind;
use super::request::{EventType, event, required};
use crate::api::common::filled;
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{RequestBody, Violations, lenient};
use crate::state::AppState;

/// The most tags of one description.
const MAX_TAGS: usize = 64;

/// A description of one operation of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ApiDocRegister {
    /// The path that all APIs of the application are below.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub context_path: Option<String>,
    /// The path.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub api_path: Option<String>,
    /// 0 get, 1 head, 2 post, 3 put, 4 patch, 5 delete, 6 options, 7 trace, 8 none.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub http_method: Option<i32>,
    /// Media types that it takes.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub consume: Option<String>,
    /// Media types that it answers.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub produce: Option<String>,
    /// Version of the API.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub version: Option<String>,
    /// Protocol; see the other registrations.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub rpc_type: Option<String>,
    /// 0 unpublished, 1 published, 2 offline.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub state: Option<i32>,
    /// Further facts, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub ext: Option<String>,
    /// Who answers for it.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub api_owner: Option<String>,
    /// Free text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub api_desc: Option<String>,
    /// 0 swagger, 1 annotation, 2 a person, 3 imported swagger, 4 imported yapi.
    #[serde(deserialize_with = "lenient::opt_i32")]
    pub api_source: Option<i32>,
    /// The description proper, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub document: Option<String>,
    /// `REGISTER` stores it, `OFFLINE` marks all of the context path, others do nothing.
    #[serde(deserialize_with = "lenient::opt_string")]
    pub event_type: Option<String>,
    /// Names of tags; none means the context path.
    pub tags: Option<Vec<String>>,
}

impl RequestBody for ApiDocRegister {
    /// What is missing is left out and answered `success`.
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

/// Stores a description, or marks those of a context path as offline.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn store(context: &Context, request: &ApiDocRegister) -> ApiResult<()> {
    // One without an event is left out by the reference too.
    let event = event(request.event_type.as_deref(), EventType::Ignored);
    let path = required("contextPath", request.context_path.as_deref())?;
    match event.map_err(ApiError::refused)? {
        EventType::Register => register(context, request, path).await,
        EventType::Offline => {
            let mut uow = context.begin_for_client(path).await?;
            api_doc::go_offline(&mut uow, path).await?;
            uow.commit().await?;
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn register(context: &Context, request: &ApiDocRegister, path: &str) -> ApiResult<()> {
    let rpc_type = required("rpcType", request.rpc_type.as_deref())?;
    if Kind::parse(rpc_type).is_none() {
        return Err(ApiError::refused(format!(
            "rpcType: {rpc_type:?} is not served, expected {}",
            Kind::WORDS
        )));
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let doc = ApiDoc {
        context_path: path.to_owned(),
        api_path: required("apiPath", request.api_path.as_deref())?.to_owned(),
        http_method: within("httpMethod", request.http_method, 8)?,
        consume: text(&request.consume),
        produce: text(&request.produce),
        version: text(&request.version),
        rpc_type: rpc_type.to_owned(),
        state: within("state", request.state, 2)?,
        ext: text(&request.ext),
        api_owner: text(&request.api_owner),
        api_desc: text(&request.api_desc),
        api_source: within("apiSource", request.api_source, 4)?,
        document_md5: digest(request.document.as_deref().unwrap_or_default()),
        document: text(&request.document),
    };
    let tags = tags(request, path)?;
    let mut uow = context.begin_for_client(path).await?;
    api_doc::register(&mut uow, &doc, &tags).await?;
    uow.commit().await?;
    Ok(())
}

/// The tags, the context path if there are none.
fn tags(request: &ApiDocRegister, path: &str) -> ApiResult<Vec<String>> {
    let named = request.tags.iter().flatten().filter_map(|tag| filled(Some(tag)));
    let mut tags = Vec::new();
    for tag in named.take(MAX_TAGS) {
        tags.push(required("tags", Some(tag))?.to_owned());
    }
    if tags.is_empty() {
        tags.push(path.to_owned());
    }
    Ok(tags)
}

fn within(field: &str, value: Option<i32>, most: i32) -> ApiResult<i32> {
    let value = value.unwrap_or_default();
    if (0..=most).contains(&value) {
        return Ok(value);
    }
    Err(ApiError::refused(format!("{field}: {value} is none, expected 0 to {most}")))
}

fn digest(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
