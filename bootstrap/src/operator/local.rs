//! The local admin API: selectors and rules straight into a gateway.
//!
//! What is written here is in force at once, like a change from an admin, and is no more than that: the
//! next change of the same object, and every full refresh, put the admin's state in its place.
//!
//! Source: ShenYu 2.7.1, local API: calls, defaults, bare words as answers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use longmen_core::model::{
    AppAuth, Condition, MetaData, Plugin, Rule, Selector, Upstream, UpstreamList,
};
use longmen_core::snapshot::ConfigState;
use longmen_core::sync::{Event, Frame, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::sync::Applier;

const SUCCESS: &str = "success";

/// The place of what does not say where it stands.
const SORT: i32 = 10;

/// One call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Without `/shenyu/`.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Bytes,
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
pub(super) async fn call(applier: &Applier, namespace: &str, call: Call) -> Result<Said, String> {
    let writer = Writer { applier, namespace };
    if call.method == Method::POST {
        return write(&writer, &call).await;
    }
    if call.method != Method::GET {
        return Ok(Said::Nothing);
    }
    // All objects may be many: they are not for a thread that serves.
    match applier.look(move |state| read_or_take(state, &call)).await? {
        Found::Said(said) => Ok(said),
        Found::Gone(frames) => writer.write(frames).await,
    }
}

async fn write(writer: &Writer<'_>, call: &Call) -> Result<Said, String> {
    match call.path.as_str() {
        "plugin/saveOrUpdate" => writer.plugin(call.read()?).await,
        "plugin/selector/saveOrUpdate" => writer.selector(call.read()?).await,
        "plugin/rule/saveOrUpdate" => writer.rule(call.read()?).await,
        "plugin/selectorAndRule" => {
            let mut given: Together = call.read()?;
            given.rule_data_list = vec![OneRule {
                rule_name: None,
                rule_handler: given.rule_handler.take(),
                match_mode: None,
                condition_data_list: given.condition_data_list.clone(),
            }];
            writer.together(given).await
        }
        "plugin/selectorAndRules" => writer.together(call.read()?).await,
        "auth/saveOrUpdate" => {
            let auth: AppAuth = call.read()?;
            if auth.app_key.is_empty() {
                return Err("appKey: expected a key, found none".to_owned());
            }
            writer.put(Payload::AppAuth(vec![auth])).await
        }
        "meta/saveOrUpdate" => {
            let mut data: MetaData = call.read()?;
            fill(&mut data.id);
            writer.put(Payload::MetaData(vec![data])).await
        }
        _ => Ok(Said::Nothing),
    }
}

/// What a call that reads or takes away comes to.
enum Found {
    Said(Said),
    /// What is taken away.
    Gone(Vec<Frame>),
}

fn read_or_take(state: &ConfigState, call: &Call) -> Result<Found, String> {
    Ok(Found::Said(match call.path.as_str() {
        "plugin/findByName" => {
            let name = call.required("name")?;
            match state.plugins.get(&*name) {
                Some(plugin) => Said::Json(json(plugin)),
                None => Said::Word(format!("can not find this plugin : {name}")),
            }
        }
        "plugin/selector/findList" => {
            let (plugin, id) = (call.required("pluginName")?, call.parameter("id"));
            let none = format!("Error: can not find selector data by pluginName :{plugin}");
            list(state.selectors.get(&*plugin), |one| &one.id, id.as_deref(), none)
        }
        "plugin/rule/findList" => {
            let (selector, id) = (call.required("selectorId")?, call.parameter("id"));
            let none = format!("Error: can not find rule data by selector id :{selector}");
            list(state.rules.get(&*selector), |one| &one.id, id.as_deref(), none)
        }
        path => match gone(state, path, call)? {
            Some(frames) => return Ok(Found::Gone(frames)),
            None => Said::Nothing,
        },
    }))
}

/// Those with the wanted id, all without one; `none` where there is nothing to choose from.
fn list<T: Serialize>(
    all: Option<&BTreeMap<String, Arc<T>>>,
    id_of: impl Fn(&T) -> &String,
    wanted: Option<&str>,
    none: String,
) -> Said {
    let Some(all) = all.filter(|all| !all.is_empty()) else { return Said::Word(none) };
    let found = all.values().filter(|one| wanted.is_none_or(|wanted| id_of(one) == wanted));
    Said::Json(json(&found.collect::<Vec<_>>()))
}

impl Call {
    fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("request body: {error}"))
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
fn gone(state: &ConfigState, path: &str, call: &Call) -> Result<Option<Vec<Frame>>, String> {
    let plugins = |wanted: &dyn Fn(&str) -> bool| -> Vec<Plugin> {
        let found = state.plugins.values().filter(|plugin| wanted(&plugin.name));
        found.map(|plugin| (**plugin).clone()).collect()
    };
    Ok(Some(match path {
        "cleanAll" => everything_of(state, |_| true),
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
            let (name, id) = (call.required("pluginName")?, call.required("id")?);
            let of_plugin = state.selectors.get(&*name).into_iter().flat_map(|all| all.values());
            let found = of_plugin.filter(|one| one.id == id);
            vec![delete(Payload::Selector(found.map(|one| (**one).clone()).collect()))]
        }
        "plugin/rule/delete" => {
            let (selector, id) = (call.required("selectorId")?, call.required("id")?);
            let of_selector = state.rules.get(&*selector).into_iter().flat_map(|all| all.values());
            let found = of_selector.filter(|one| one.id == id);
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

fn json(value: &impl Serialize) -> String {
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

    async fn plugin(&self, given: serde_json::Value) -> Result<Said, String> {
        let mut plugin: Plugin = read(&given)?;
        if plugin.name.is_empty() {
            return Err("name: expected the name of a plugin, found none".to_owned());
        }
        fill(&mut plugin.id);
        plugin.enabled = is_absent(&given, "enabled") || plugin.enabled;
        plugin.namespace_id.get_or_insert_with(|| self.namespace.to_owned());
        self.put(Payload::Plugin(vec![plugin])).await
    }

    async fn selector(&self, given: serde_json::Value) -> Result<Said, String> {
        let mut selector: Selector = read(&given)?;
        if selector.plugin_name.is_empty() {
            return Ok(Said::Word("Error: please add pluginName!".to_owned()));
        }
        fill(&mut selector.id);
        selector.enabled = is_absent(&given, "enabled") || selector.enabled;
        self.complete(&mut selector);
        let id = selector.id.clone();
        let frames = with_upstreams(selector)?;
        self.write(frames).await?;
        Ok(Said::Word(id))
    }

    async fn rule(&self, given: serde_json::Value) -> Result<Said, String> {
        let mut rule: Rule = read(&given)?;
        if rule.selector_id.is_empty() {
            return Ok(Said::Word("Error: please add selectorId!".to_owned()));
        }
        if rule.plugin_name.is_empty() {
            return Err("pluginName: expected the name of a plugin, found none".to_owned());
        }
        fill(&mut rule.id);
        rule.enabled = is_absent(&given, "enabled") || rule.enabled;
        rule.sort.get_or_insert(SORT);
        rule.name.get_or_insert_with(|| rule.id.clone());
        rule.namespace_id.get_or_insert_with(|| self.namespace.to_owned());
        let id = rule.id.clone();
        self.put(Payload::Rule(vec![rule])).await?;
        Ok(Said::Word(id))
    }

    async fn together(&self, given: Together) -> Result<Said, String> {
        if given.plugin_name.is_empty() {
            return Err("pluginName: expected the name of a plugin, found none".to_owned());
        }
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
        let rules = given.rule_data_list.into_iter().map(|one| {
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

fn is_absent(given: &serde_json::Value, member: &str) -> bool {
    given.get(member).is_none_or(serde_json::Value::is_null)
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
