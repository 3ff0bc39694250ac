//! `rewrite`: replaces the path by a regular expression or a template.
//!
//! Source: ShenYu 2.7.1, rewrite plugin, with its two odd ways kept because rules depend on them:
//! the expression sees the path with its context path, and a template's capture starts one past the
//! place of the first `{`.

use longmen_core::chain::{
    CatalogueEntry, FieldType, Flow, FormField, FormScope, Handle, HandleFault, HandleType, HitRef,
    Hook, HookResult, Notes, Plugin, RequestContext, RuleParts, read_handle,
};
use longmen_core::model::{PluginClass, bool_or_default};
use rand::Rng;
use regex::Regex;
use serde::Deserialize;

use crate::handle::{opt_i64, opt_text};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rewrite;

/// How the path is replaced.
#[derive(Debug, Clone)]
enum Replacement {
    /// Every match of the expression; `$1` names a group.
    All { regex: Regex, with: String },
    /// The token in `with` by the path's text from `from` on.
    Template { token: String, from: usize, with: String },
}

/// Settings of a rule.
#[derive(Debug, Clone)]
pub struct RewriteRule {
    replacement: Option<Replacement>,
    /// For how many of 100 requests it holds.
    percentage: u8,
    /// Whether the metadata is looked up again for the new path.
    pub rewrite_meta_data: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    #[serde(deserialize_with = "opt_text")]
    regex: Option<String>,
    #[serde(deserialize_with = "opt_text")]
    replace: Option<String>,
    #[serde(deserialize_with = "opt_i64")]
    percentage: Option<i64>,
    #[serde(deserialize_with = "bool_or_default")]
    rewrite_meta_data: bool,
}

impl HandleType for RewriteRule {
    fn read(text: &str) -> Result<Self, Vec<HandleFault>> {
        let raw: Raw = read_handle(text)?;
        let percentage = crate::upstreams::percentage(raw.percentage)?;
        let replacement = match (raw.regex, raw.replace) {
            (Some(regex), Some(with)) if with.contains('{') => Some(template(&regex, with)?),
            (Some(text), Some(with)) => match Regex::new(&text) {
                Ok(regex) => Some(Replacement::All { regex, with: java_groups(&with) }),
                Err(error) => {
                    let why = last_line(&error.to_string());
                    let expected = format!("a regular expression: {why}");
                    return Err(vec![HandleFault::new("regex", text, expected)]);
                }
            },
            _ => None,
        };
        Ok(Self { replacement, percentage, rewrite_meta_data: raw.rewrite_meta_data })
    }
}

fn template(regex: &str, with: String) -> Result<Replacement, Vec<HandleFault>> {
    match regex.find('{') {
        None => {
            Err(vec![HandleFault::new("regex", regex, "a template with `{`, as replace has one")])
        }
        Some(at) => Ok(Replacement::Template { token: regex[at..].to_owned(), from: at + 1, with }),
    }
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// `$1x` names group 1 in the reference, but a group called `1x` in this engine: braces make it
/// plain. `\$` is a dollar there.
fn java_groups(with: &str) -> String {
    let mut out = String::with_capacity(with.len() + 4);
    let mut chars = with.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            '$' if chars.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str("${");
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            '$' => out.push_str("$$"),
            other => out.push(other),
        }
    }
    out
}

const fn field(
    field: &'static str,
    field_type: FieldType,
    default_value: &'static str,
) -> FormField {
    FormField { field, scope: FormScope::Rule, field_type, default_value }
}

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "rewrite",
    order: 90,
    response_order: 90,
    role: "HttpProcess",
    class: PluginClass::Transform,
    label: "org.apache.shenyu.plugin.rewrite.RewritePlugin",
    fields: &[
        field("regex", FieldType::Text, ""),
        field("replace", FieldType::Text, ""),
        field("percentage", FieldType::Number, "100"),
        field("rewriteMetaData", FieldType::Select, "false"),
    ],
};

impl Plugin for Rewrite {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        Ok(RuleParts::head_only(Handle::new(RewriteRule::read(handle)?)))
    }

    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        if let Some(rule) = hit.rule.parts.handle.get::<RewriteRule>()
            && rand::rng().random_range(0..100) < rule.percentage
        {
            cx.rewrite_uri = rewritten(rule, &input(cx));
        }
        Hook::Ready(Ok(Flow::Continue))
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        let rule = hit.rule.parts.handle.get::<RewriteRule>();
        match rule.map(|rule| (rule.percentage, rewritten(rule, &input(cx)))) {
            Some((percentage, Some(path))) => {
                let becomes = format!("the upstream's path becomes {path:?}");
                if notes.chance(percentage, becomes, "the path is not rewritten") {
                    cx.rewrite_uri = Some(path);
                }
            }
            Some((_, None)) | None => notes.effect("the rule replaces nothing"),
        }
        Ok(Flow::Continue)
    }
}

/// The text the expression sees.
fn input(cx: &RequestContext) -> String {
    match (&cx.rewrite_context_path, &cx.real_url) {
        (Some(context_path), Some(real)) => [context_path.as_str(), real].concat(),
        _ => cx.raw_path().to_owned(),
    }
}

fn rewritten(rule: &RewriteRule, input: &str) -> Option<String> {
    Some(match rule.replacement.as_ref()? {
        Replacement::All { regex, with } => regex.replace_all(input, with.as_str()).into_owned(),
        Replacement::Template { token, from, with } => {
            with.replace(token, input.get(*from..).unwrap_or_default())
        }
    })
}

#[cfg(test)]
mod tests {
    use longmen_core::chain::HandleType;

    use super::{RewriteRule, rewritten};

    #[test]
    fn vectors_of_the_reference() {
        for (handle, path, expected) in [
            (r#"{"regex":"/old/(.*)","replace":"/new/$1"}"#, "/old/x", Some("/new/x")),
            (r#"{"regex":"a/{id}","replace":"/b/{id}"}"#, "/a/12", Some("/b/12")),
            (r#"{"regex":"/nomatch","replace":"/n"}"#, "/http/a", Some("/http/a")),
            (r#"{"regex":"","replace":"/n"}"#, "/x", None),
            (r#"{"regex":"/(\\d)x","replace":"/$1y"}"#, "/1x/2x", Some("/1y/2y")),
        ] {
            let rule = RewriteRule::read(handle).unwrap();
            assert_eq!(rewritten(&rule, path).as_deref(), expected, "{handle} {path}");
        }
    }

    #[test]
    fn faults_name_the_member() {
        let faults = RewriteRule::read(r#"{"regex":"/x","replace":"/y/{id}"}"#).unwrap_err();
        assert_eq!(faults[0].field, "regex");
        let faults = RewriteRule::read(r#"{"regex":"[","replace":"/y"}"#).unwrap_err();
        assert!(faults[0].to_string().starts_with("regex: [ is not a regular expression"));
    }
}
