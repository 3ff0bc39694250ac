//! What the catalogue's endpoints take.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longmen_db::repository::plugin::NewPlugin;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    api::common::MAX_KEY_BYTES,
    error::{ApiError, ApiResult},
    extract::{JavaType, QueryArgs, RequestBody, RequestForm, Violations, lenient},
    state::AppState,
};

/// The largest jar that is taken.
const MAX_JAR_BYTES: usize = 16 << 20;

/// The largest form: the jar in Base64, and room for the rest.
pub(super) const MAX_BODY_BYTES: usize = MAX_JAR_BYTES / 3 * 4 + (1 << 20);

/// A plugin to add to the catalogue, or to change there.
#[derive(Debug, Clone)]
pub(super) struct PluginForm {
    name: Option<String>,
    role: Option<String>,
    sort: Option<i32>,
    enabled: Option<bool>,
    config: Option<String>,
    /// Base64 of a jar; an empty one is no jar, and refused.
    file: Option<String>,
}

impl RequestForm for PluginForm {
    const FIELDS: &'static [(&'static str, JavaType, bool)] = &[
        ("name", JavaType::String, true),
        ("role", JavaType::String, true),
        ("sort", JavaType::Integer, true),
        ("enabled", JavaType::Boolean, true),
        ("config", JavaType::String, false),
        ("file", JavaType::String, false),
    ];

    async fn read(
        _state: &AppState,
        fields: &QueryArgs,
        rules: &mut Violations,
    ) -> ApiResult<Self> {
        let form = Self {
            name: fields.text("name"),
            role: fields.text("role"),
            sort: fields.integer("sort")?,
            enabled: fields.boolean("enabled")?,
            config: fields.text("config"),
            file: fields.text("file"),
        };
        check(rules, form.name.as_deref(), form.role.as_deref(), form.sort, form.enabled);
        Ok(form)
    }
}

impl PluginForm {
    /// The plugin to store. Everything that is required is there: the rules have been checked.
    pub(super) fn into_new(self) -> ApiResult<NewPlugin> {
        let Self {
            name: Some(name),
            role: Some(role),
            sort: Some(sort),
            enabled: Some(enabled),
            config,
            file,
        } = self
        else {
            return Err(ApiError::Unreadable);
        };
        if file.as_deref().is_some_and(|file| !is_jar(file)) {
            return Err(ApiError::refused("The plugin JAR file is not correct or exceeds 16MB!"));
        }
        Ok(NewPlugin { name, config, role, sort, enabled, plugin_jar: file })
    }
}

/// Whether the text is the Base64 of an archive of a size that is taken. It is carried to gateways
/// that run it; nothing here does.
fn is_jar(file: &str) -> bool {
    let bytes = STANDARD.decode(file.trim());
    bytes.is_ok_and(|bytes| bytes.len() <= MAX_JAR_BYTES && bytes.starts_with(b"PK\x03\x04"))
}

/// The plugin whose menu is to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MenuRequest {
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient::opt_string")]
    role: Option<String>,
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    sort: Option<i32>,
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    enabled: Option<bool>,
}

impl RequestBody for MenuRequest {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        check(rules, self.name.as_deref(), self.role.as_deref(), self.sort, self.enabled);
        Ok(())
    }
}

fn check(
    rules: &mut Violations,
    name: Option<&str>,
    role: Option<&str>,
    sort: Option<i32>,
    enabled: Option<bool>,
) {
    rules.not_blank("name", name);
    rules.max_bytes("name", name, MAX_KEY_BYTES);
    rules.not_blank("role", role);
    rules.not_null("sort", sort.as_ref());
    rules.min("sort", sort, 0);
    rules.not_null("enabled", enabled.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_archives_are_taken() {
        for (file, taken) in [
            (STANDARD.encode(b"PK\x03\x04rest"), true),
            (STANDARD.encode(b"#!/bin/sh"), false),
            (String::new(), false),
            ("no base64".to_owned(), false),
        ] {
            assert_eq!(is_jar(&file), taken, "{file}");
        }
    }
}
