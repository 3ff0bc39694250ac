//! Storing tools for language models: the selector and the rule of the plugin `mcpServer`.
//!
//! Source: ShenYu 2.7.1, register-mcp: as registered metadata, but for plugin, condition and settings.

use super::condition;
use super::request::{McpRegister, namespace, required, selector_name};
use super::target::Target;
use crate::context::Context;
use crate::error::{ApiError, ApiResult};

/// The plugin of the tools.
const MCP_SERVER: &str = "mcpServer";

/// Stores what is missing of the tools; all in one change set.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn store(context: &Context, request: &McpRegister) -> ApiResult<()> {
    let Some(api) = &request.meta_data else {
        return Err(ApiError::refused("metaDataRegisterDTO: is absent, expected an object"));
    };
    let handle = required_json(request.mcp_config.as_deref())?;
    let namespace = namespace(request.namespace_id.as_deref().or(api.namespace_id.as_deref()))?;
    let app_name = required("appName", api.app_name.as_deref())?;
    let rule_name = required("ruleName", api.rule_name.as_deref().or(api.path.as_deref()))?;
    let context_path = api.context_path.as_deref().filter(|path| !path.is_empty());
    let name = required("contextPath", Some(context_path.unwrap_or(app_name)))?;
    let (mut target, linked) = Target::hold(context, app_name, namespace, &[MCP_SERVER]).await?;
    if let Some(own) = target.selectors(&linked, &selector_name(name)).await?.first() {
        target.ensure_rule(own, rule_name, condition::everything(), handle).await?;
    }
    target.commit().await
}

fn required_json(text: Option<&str>) -> ApiResult<&str> {
    let text = text.unwrap_or_default();
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(serde_json::Value::Object(_)) => Ok(text),
        _ => Err(ApiError::refused(format!(
            "mcpConfig: {:?} is none, expected the JSON text of an object",
            text.chars().take(64).collect::<String>()
        ))),
    }
}
