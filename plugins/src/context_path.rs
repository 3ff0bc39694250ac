//! `contextPath`: cuts a context path off, or puts a prefix before the path.
//!
//! Source: ShenYu 2.7.1, contextPath plugin. A context path that is longer than the path ends in an
//! internal error there; here it is a refusal that says so. Cutting counts characters and checks no
//! prefix, as there.

use longmen_core::chain::{
    CatalogueEntry, FieldType, Flow, FormField, FormScope, Handle, HandleFault, HandleType, HitRef,
    Hook, HookResult, Notes, Plugin, RequestContext, RuleParts, read_handle,
};
use longmen_core::error::{Fault, GatewayError, Reason};
use longmen_core::model::PluginClass;
use rand::Rng;
use serde::Deserialize;

use crate::handle::{opt_i64, opt_text};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextPath;

/// Settings of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextPathRule {
    /// What is cut off the front of the path.
    pub context_path: Option<String>,
    /// What is put before the rest.
    pub add_prefix: Option<String>,
    /// What later plugins match on instead of the context path.
    pub rewrite_context_path: Option<String>,
    /// For how many of 100 requests the rewriting holds.
    pub percentage: u8,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    #[serde(deserialize_with = "opt_text")]
    context_path: Option<String>,
    #[serde(deserialize_with = "opt_text")]
    add_prefix: Option<String>,
    #[serde(deserialize_with = "opt_text")]
    rewrite_context_path: Option<String>,
    #[serde(deserialize_with = "opt_i64")]
    percentage: Option<i64>,
}

impl HandleType for ContextPathRule {
    fn read(text: &str) -> Result<Self, Vec<HandleFault>> {
        let raw: Raw = read_handle(text)?;
        Ok(Self {
            context_path: raw.context_path,
            add_prefix: raw.add_prefix,
            rewrite_context_path: raw.rewrite_context_path,
            percentage: crate::upstreams::percentage(raw.percentage)?,
        })
    }
}

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "contextPath",
    order: 80,
    response_order: 80,
    role: "HttpProcess",
    class: PluginClass::Transform,
    label: "org.apache.shenyu.plugin.context.path.ContextPathPlugin",
    fields: &[
        FormField {
            field: "contextPath",
            scope: FormScope::Rule,
            field_type: FieldType::Text,
            default_value: "",
        },
        FormField {
            field: "addPrefix",
            scope: FormScope::Rule,
            field_type: FieldType::Text,
            default_value: "",
        },
        FormField {
            field: "rewriteContextPath",
            scope: FormScope::Rule,
            field_type: FieldType::Text,
            default_value: "",
        },
        FormField {
            field: "percentage",
            scope: FormScope::Rule,
            field_type: FieldType::Number,
            default_value: "100",
        },
    ],
};

impl Plugin for ContextPath {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        Ok(RuleParts::head_only(Handle::new(ContextPathRule::read(handle)?)))
    }

    fn default_rule(&self) -> RuleParts {
        RuleParts::head_only(Handle::new(ContextPathRule { percentage: 100, ..Default::default() }))
    }

    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        let Some(rule) = hit.rule.parts.handle.get::<ContextPathRule>() else {
            return Hook::Ready(Ok(Flow::Continue));
        };
        Hook::Ready(apply(rule, cx, |rule| rand::rng().random_range(0..100) < rule.percentage))
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        let Some(rule) = hit.rule.parts.handle.get::<ContextPathRule>() else {
            return Ok(Flow::Continue);
        };
        let told = &mut *notes;
        let flow = apply(rule, cx, |rule| {
            let instead = rule.rewrite_context_path.as_deref().unwrap_or_default();
            told.chance(
                rule.percentage,
                format!("later plugins match on {instead:?} and the rest of the path"),
                "later plugins match on the path as it came",
            )
        })?;
        let real = cx.real_url.as_deref().unwrap_or_default();
        notes.effect(format!("the upstream's path becomes {real:?}"));
        Ok(flow)
    }
}

fn apply(
    rule: &ContextPathRule,
    cx: &mut RequestContext,
    rewrites: impl FnOnce(&ContextPathRule) -> bool,
) -> HookResult {
    let real = shortened(rule, cx.raw_path())?;
    cx.context_path.clone_from(&rule.context_path);
    if rule.rewrite_context_path.is_some() && rewrites(rule) {
        cx.rewrite_context_path.clone_from(&rule.rewrite_context_path);
    }
    cx.real_url = Some(real);
    Ok(Flow::Continue)
}

/// The path without its context path and with the prefix.
fn shortened(rule: &ContextPathRule, raw_path: &str) -> Result<String, GatewayError> {
    let real = match &rule.context_path {
        None => "",
        Some(context_path) => raw_path.get(context_path.len()..).ok_or_else(|| {
            GatewayError::new(
                Fault::Gateway,
                Reason::PluginFailed,
                http::StatusCode::INTERNAL_SERVER_ERROR,
                "Internal Server Error",
            )
            .detail(format_args!(
                "contextPath: {context_path:?} is longer than the path {raw_path:?} of this request"
            ))
        })?,
    };
    Ok(match &rule.add_prefix {
        None => real.to_owned(),
        Some(prefix) if real.trim().is_empty() => [prefix, raw_path].concat(),
        Some(prefix) => [prefix, real].concat(),
    })
}

#[cfg(test)]
mod tests {
    use longmen_core::chain::HandleType;

    use super::{ContextPathRule, shortened};

    #[test]
    fn paths_are_cut_and_prefixed() {
        for (handle, path, expected) in [
            (r#"{"contextPath":"/http"}"#, "/http/a/b", Some("/a/b")),
            (r#"{"contextPath":"/http"}"#, "/http", Some("")),
            (r#"{"contextPath":"","addPrefix":"/v1"}"#, "/a", Some("/v1/a")),
            (r#"{"contextPath":"/http","addPrefix":"/api"}"#, "/http/a", Some("/api/a")),
            (r#"{"contextPath":"/longer-than-path"}"#, "/a", None),
            ("", "/a", Some("")),
        ] {
            let rule = ContextPathRule::read(handle).unwrap();
            assert_eq!(shortened(&rule, path).ok().as_deref(), expected, "{handle} {path}");
        }
    }

    #[test]
    fn a_bad_percentage_is_named() {
        let faults = ContextPathRule::read(r#"{"percentage":"many"}"#).unwrap_err();
        assert_eq!(faults[0].field, "percentage");
        let faults = ContextPathRule::read(r#"{"percentage":101}"#).unwrap_err();
        assert_eq!(faults[0].to_string(), "percentage: 101 is not a number between 0 and 100");
        assert_eq!(ContextPathRule::read(r#"{"percentage":"7"}"#).unwrap().percentage, 7);
    }
}
