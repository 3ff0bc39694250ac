//! The local admin API: selectors and rules straight into a gateway.
//!
//! What is written here is in force at once, like a change from an admin, and is no more than that: the
//! next change of the same object, and every full refresh, put the admin's state in its place.
//!
//! Source: ShenYu 2.7.1, local API: calls, defaults, bare words as answers.

use std::borrow::Cow;
use std::collections::HashMap;

use http::Method;
use longmen_core::model::{
    AppAuth, Condition, MetaData, Plugin, Rule, Selector, Upstream, UpstreamList,
};
use longmen_core::snapshot::ConfigState;
use longmen_core::sync::{Event, Frame, Payload};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::sync::Applier;

const SUCCESS: &str = "success";

/// The place of what does not say where it stands.
const SORT: i32 = 10;

/// One call.
pub(super) struct Call<'a> {
    pub(super) method: &'a Method,
    /// Without `/shenyu/`.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
}

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A bare word, an id, or what is wrong, in words.
    Word(String),
    /// What was looked for.
    Json(String),
    /// There is no such call.
    Nothing,
}

/// Answers a call.
///
/// # Errors
/// A body or a parameter that cannot be read, in words.
pub(super) async fn call(
    applier: &Applier,
    namespace: &str,
    call: &Call<'_>,
) -> Result<Said, String> {
    let writes = *call.method == Method::POST;
    if !writes && *call.method != Method::GET {
        return Ok(Said::Nothing);
    }
    let writer = Writer { applier, namespace };
    match (writes, call.path) {
        (true, "plugin/saveOrUpdate") => writer.plugin(call.read()?).await,
        (true, "plugin/selector/saveOrUpdate") => writer.selector(call.read()?).await,
        (true, "plugin/rule/saveOrUpdate") => writer.rule(call.read()?).await,
        (true, "plugin/selectorAndRule" | "plugin/selectorAndRules") => {
            writer.together(call.read()?).await
        }
        (true, "auth/saveOrUpdate") => {
            writer.put(Payload::AppAuth(vec![call.read::<AppAuth>()?])).await
        }
        (true, "meta/saveOrUpdate") => {
            let mut data: MetaData = call.read()?;
            fill(&mut data.id);
            writer.put(Payload::MetaData(vec![data])).await
        }
        (false, "plugin/findByName") => {
            let (state, _) = applier.copy_to_show().await;
            Ok(Said::Json(json(&state.plugins.get(&*call.required("name")?))))
        }
        (false, "plugin/selector/findList") => {
            let (state, _) = applier.copy_to_show().await;
            find_selectors(&state, &call.required("pluginName")?, call.parameter("id").as_deref())
        }
        (false, "plugin/rule/findList") => {
            let (state, _) = applier.copy_to_show().await;
            find_rules(&state, &call.required("selectorId")?, call.parameter("id").as_deref())
        }
        (false, path) => {
            let (state, _) = applier.copy_to_show().await;
            match gone(&state, path, call)? {
                None => Ok(Said::Nothing),
                Some(frames) => writer.write(frames).await,
            }
        }
        _ => Ok(Said::Nothing),
    }
}

impl Call<'_> {
    fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(self.body).map_err(|error| format!("request body: {error}"))
    }

    fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        let value = pairs.find(|(key, _)| key == name).map(|(_, value)| value);
        value.filter(|value| !value.is_empty())
    }

    fn required(&self, name: &str) -> Result<Cow<'_, str>, String> {
        self.parameter(name)
            .ok_or_else(|| format!("parameter {name}: expected a value, found none"))
    }
}

/// The frames that take away what a call names; `None` where there is no such call.
fn gone(state: &ConfigState, path: &str, call: &Call<'_>) -> Result<Option<Vec<Frame>>, String> {
    let plugins = |wanted: &dyn Fn(&str) -> bool| -> Vec<Plugin> {
        let found = state.plugins.values().filter(|plugin| wanted(&plugin.name));
        found.map(|plugin| (**plugin).clone()).collect()
    };
    Ok(Some(match path {
        "cleanAll" => {
            let mut frames = everything_of(state, |_| true);
            let metadata = state.metadata.values().map(|data| (**data).clone()).collect();
            let auths = state.app_auth.values().map(|auth| (**auth).clone()).collect();
            frames.push(delete(Payload::MetaData(metadata)));
            frames.push(delete(Payload::AppAuth(auths)));
            frames
        }
        "cleanPlugin" => {
            let name = call.required("name")?;
            everything_of(state, |of| of == name)
        }
        "plugin/delete" => {
            let name = call.required("name")?;
            vec![delete(Payload::Plugin(plugins(&|of| of == name)))]
        }
        "plugin/deleteAll" => vec![delete(Payload::Plugin(plugins(&|_| true)))],
        "plugin/selector/delete" => {
            let (name, id) = (call.required("pluginName")?, call.parameter("id"));
            let of_plugin = state.selectors.get(&*name).into_iter().flat_map(|all| all.values());
            let found = of_plugin.filter(|one| id.as_ref().is_none_or(|id| one.id == *id));
            vec![delete(Payload::Selector(found.map(|one| (**one).clone()).collect()))]
        }
        "plugin/rule/delete" => {
            let (selector, id) = (call.required("selectorId")?, call.parameter("id"));
            let of_selector = state.rules.get(&*selector).into_iter().flat_map(|all| all.values());
            let found = of_selector.filter(|one| id.as_ref().is_none_or(|id| one.id == *id));
            vec![delete(Payload::Rule(found.map(|one| (**one).clone()).collect()))]
        }
        "auth/delete" => {
            let key = call.required("appKey")?;
            let found = state.app_auth.get(&*key).map(|auth| (**auth).clone());
            vec![delete(Payload::AppAuth(found.into_iter().collect()))]
        }
        "meta/delete" => {
            let (id, path) = (call.parameter("id"), call.parameter("path"));
            let found = state.metadata.values().filter(|data| match &id {
                Some(id) => data.id == *id,
                None => path.as_ref().is_some_and(|path| data.path == *path),
            });
            vec![delete(Payload::MetaData(found.map(|data| (**data).clone()).collect()))]
        }
        _ => return Ok(None),
    }))
}

/// Takes away plugins with their selectors and rules.
fn everything_of(state: &ConfigState, wanted: impl Fn(&str) -> bool) -> Vec<Frame> {
    let plugins = state.plugins.values().filter(|plugin| wanted(&plugin.name));
    let plugins: Vec<Plugin> = plugins.map(|plugin| (**plugin).clone()).collect();
    let of_plugins = state.selectors.iter().filter(|(name, _)| wanted(name));
    let selectors: Vec<Selector> =
        of_plugins.flat_map(|(_, all)| all.values()).map(|one| (**one).clone()).collect();
    let rules: Vec<Rule> = state
        .rules
        .values()
        .flat_map(|all| all.values())
        .filter(|rule| wanted(&rule.plugin_name))
        .map(|rule| (**rule).clone())
        .collect();
    vec![
        delete(Payload::Rule(rules)),
        delete(Payload::Selector(selectors)),
        delete(Payload::Plugin(plugins)),
    ]
}

fn delete(payload: Payload) -> Frame {
    Frame { event: Event::Delete, payload, mark: None }
}

fn find_selectors(state: &ConfigState, plugin: &str, id: Option<&str>) -> Result<Said, String> {
    let all = state.selectors.get(plugin).into_iter().flat_map(|all| all.values());
    let found: Vec<_> = all.filter(|one| id.is_none_or(|id| one.id == id)).collect();
    if found.is_empty() {
        return Ok(Said::Word(format!(
            "Error: can not find selector data by pluginName :{plugin}"
        )));
    }
    Ok(Said::Json(json(&found)))
}

fn find_rules(state: &ConfigState, selector: &str, id: Option<&str>) -> Result<Said, String> {
    let all = state.rules.get(selector).into_iter().flat_map(|all| all.values());
    let found: Vec<_> = all.filter(|one| id.is_none_or(|id| one.id == id)).collect();
    if found.is_empty() {
        return Ok(Said::Word(format!("Error: can not find rule data by selector id :{selector}")));
    }
    Ok(Said::Json(json(&found)))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A random id, or name, where there is none.
fn fill(id: &mut String) {
    if id.is_empty() {
        *id = (rand::random::<u64>() >> 1).to_string();
    }
}

/// Several rules of one selector, or one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Together {
    plugin_name: String,
    selector_name: Option<String>,
    match_mode: Option<i32>,
    #[serde(default)]
    selector_handler: Option<String>,
    sort: Option<i32>,
    condition_data_list: Vec<Condition>,
    /// Of the call for one rule, which has the selector's conditions.
    rule_handler: Option<String>,
    #[serde(default)]
    rule_data_list: Vec<OneRule>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneRule {
    rule_name: Option<String>,
    rule_handler: Option<String>,
    match_mode: Option<i32>,
    condition_data_list: Vec<Condition>,
}

/// An upstream in a selector's handle.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandleUpstream {
    protocol: Option<String>,
    upstream_url: Option<String>,
    #[serde(default = "fifty")]
    weight: i32,
    #[serde(default = "yes")]
    status: bool,
    #[serde(default)]
    warmup: i64,
    #[serde(default = "yes")]
    health_check_enabled: bool,
}

const fn fifty() -> i32 {
    50
}

const fn yes() -> bool {
    true
}

struct Writer<'a> {
    applier: &'a Applier,
    namespace: &'a str,
}

impl Writer<'_> {
    async fn write(&self, frames: Vec<Frame>) -> Result<Said, String> {
        self.applier.local(frames).await;
        Ok(Said::Word(SUCCESS.to_owned()))
    }

    async fn put(&self, payload: Payload) -> Result<Said, String> {
        self.write(vec![Frame { event: Event::Update, payload, mark: None }]).await
    }

    async fn plugin(&self, mut plugin: Plugin) -> Result<Said, String> {
        if plugin.name.is_empty() {
            return Err("name: expected the name of a plugin, found none".to_owned());
        }
        fill(&mut plugin.id);
        plugin.namespace_id.get_or_insert_with(|| self.namespace.to_owned());
        self.put(Payload::Plugin(vec![plugin])).await
    }

    async fn selector(&self, given: serde_json::Value) -> Result<Said, String> {
        let mut selector: Selector = read(&given)?;
        if selector.plugin_name.is_empty() {
            return Err("pluginName: expected the name of a plugin, found none".to_owned());
        }
        fill(&mut selector.id);
        selector.enabled = given.get("enabled").is_none() || selector.enabled;
        self.complete(&mut selector);
        let id = selector.id.clone();
        let frames = with_upstreams(selector)?;
        self.write(frames).await?;
        Ok(Said::Word(id))
    }

    async fn rule(&self, given: serde_json::Value) -> Result<Said, String> {
        let mut rule: Rule = read(&given)?;
        if rule.selector_id.is_empty() || rule.plugin_name.is_empty() {
            return Err("selectorId, pluginName: expected both, found none".to_owned());
        }
        fill(&mut rule.id);
        rule.enabled = given.get("enabled").is_none() || rule.enabled;
        rule.sort.get_or_insert(SORT);
        rule.name.get_or_insert_with(|| rule.id.clone());
        rule.namespace_id.get_or_insert_with(|| self.namespace.to_owned());
        let id = rule.id.clone();
        self.put(Payload::Rule(vec![rule])).await?;
        Ok(Said::Word(id))
    }

    async fn together(&self, given: Together) -> Result<Said, String> {
        let mut selector = Selector {
            plugin_name: given.plugin_name.clone(),
            name: given.selector_name,
            match_mode: given.match_mode.unwrap_or_default(),
            selector_type: 1,
            handle: given.selector_handler,
            sort: given.sort,
            enabled: true,
            condition_list: Some(given.condition_data_list.clone()),
            ..Selector::default()
        };
        fill(&mut selector.id);
        self.complete(&mut selector);
        let mut rules = given.rule_data_list;
        if rules.is_empty() {
            rules.push(OneRule {
                rule_name: selector.name.clone(),
                rule_handler: given.rule_handler,
                match_mode: given.match_mode,
                condition_data_list: given.condition_data_list,
            });
        }
        let rules = rules.into_iter().map(|one| {
            let mut rule = Rule {
                selector_id: selector.id.clone(),
                plugin_name: given.plugin_name.clone(),
                name: one.rule_name,
                handle: one.rule_handler,
                match_mode: one.match_mode.unwrap_or_default(),
                condition_list: Some(one.condition_data_list),
                sort: Some(SORT),
                enabled: true,
                namespace_id: Some(self.namespace.to_owned()),
                ..Rule::default()
            };
            fill(&mut rule.id);
            rule.name.get_or_insert_with(|| rule.id.clone());
            rule
        });
        let rules: Vec<Rule> = rules.collect();
        let mut frames = with_upstreams(selector)?;
        frames.push(Frame { event: Event::Update, payload: Payload::Rule(rules), mark: None });
        self.write(frames).await
    }

    fn complete(&self, selector: &mut Selector) {
        selector.sort.get_or_insert(SORT);
        selector.name.get_or_insert_with(|| selector.id.clone());
        selector.namespace_id.get_or_insert_with(|| self.namespace.to_owned());
    }
}

fn read<T: DeserializeOwned>(given: &serde_json::Value) -> Result<T, String> {
    T::deserialize(given).map_err(|error| format!("request body: {error}"))
}

/// A selector, and the upstreams that its handle lists.
fn with_upstreams(selector: Selector) -> Result<Vec<Frame>, String> {
    let listed = selector.handle.as_deref().map(str::trim).filter(|text| text.starts_with('['));
    let mut frames = Vec::new();
    if let Some(text) = listed {
        let listed: Vec<HandleUpstream> = serde_json::from_str(text)
            .map_err(|error| format!("handle: expected a list of upstreams: {error}"))?;
        let upstreams = listed.into_iter().filter_map(|one| {
            let props = HashMap::from([
                ("warmup", one.warmup.to_string()),
                ("healthCheckEnabled", one.health_check_enabled.to_string()),
            ]);
            Some(Upstream {
                url: one.upstream_url?,
                protocol: one.protocol,
                weight: one.weight,
                status: i32::from(!one.status),
                props: Some(json(&props)),
                ..Upstream::default()
            })
        });
        let list = UpstreamList {
            selector_id: selector.id.clone(),
            plugin_name: selector.plugin_name.clone(),
            selector_name: selector.name.clone(),
            upstream_data_list: Some(upstreams.collect()),
            ..UpstreamList::default()
        };
        let payload = Payload::DiscoverUpstream(vec![list]);
        frames.push(Frame { event: Event::Update, payload, mark: None });
    }
    let payload = Payload::Selector(vec![selector]);
    frames.push(Frame { event: Event::Update, payload, mark: None });
    Ok(frames)
}
