//! The objects of a group as a stock admin writes them: twice, by two libraries.
//!
//! What a gateway gets has every member, those that are not set as null. The digest is taken over
//! a text without them, with some characters escaped. Gateways only ever compare digests.
//!
//! Source: ShenYu 2.7.1, fetches and digests as recorded.

use std::fmt::Write as _;

use bytes::Bytes;
use longmen_core::sync::Group;
use md5::{Digest as _, Md5};
use serde_json::{Map, Value};

use super::super::object::Object;
use super::super::sequence::State as Objects;

/// The members of an object, and those of the objects in its lists.
struct Shape {
    members: &'static [&'static str],
    lists: &'static [(&'static str, Shape)],
}

const fn plain(members: &'static [&'static str]) -> Shape {
    Shape { members, lists: &[] }
}

const CONDITION: Shape = plain(&["paramType", "operator", "paramName", "paramValue"]);

const PARAMETER: Shape = plain(&["appName", "appParam"]);

const PATH: Shape = plain(&["appName", "path", "enabled"]);

const UPSTREAM: Shape = plain(&[
    "id",
    "dateCreated",
    "dateUpdated",
    "discoveryHandlerId",
    "protocol",
    "url",
    "status",
    "weight",
    "props",
    "namespaceId",
]);

const fn shape(group: Group) -> Shape {
    match group {
        Group::AppAuth => Shape {
            members: &[
                "appKey",
                "appSecret",
                "enabled",
                "open",
                "paramDataList",
                "pathDataList",
                "namespaceId",
            ],
            lists: &[("paramDataList", PARAMETER), ("pathDataList", PATH)],
        },
        Group::Plugin => {
            plain(&["id", "name", "enabled", "sort", "namespaceId", "config", "role", "pluginJar"])
        }
        Group::Rule => Shape {
            members: &[
                "id",
                "name",
                "enabled",
                "sort",
                "namespaceId",
                "pluginName",
                "selectorId",
                "matchMode",
                "loged",
                "handle",
                "conditionDataList",
                "beforeConditionDataList",
                "matchRestful",
            ],
            lists: &[("conditionDataList", CONDITION)],
        },
        Group::Selector => Shape {
            members: &[
                "id",
                "name",
                "enabled",
                "sort",
                "namespaceId",
                "pluginId",
                "pluginName",
                "matchMode",
                "type",
                "logged",
                "continued",
                "handle",
                "conditionList",
                "beforeConditionList",
                "matchRestful",
            ],
            lists: &[("conditionList", CONDITION)],
        },
        Group::MetaData => plain(&[
            "id",
            "appName",
            "contextPath",
            "path",
            "rpcType",
            "serviceName",
            "methodName",
            "parameterTypes",
            "rpcExt",
            "enabled",
            "namespaceId",
        ]),
        Group::ProxySelector => {
            plain(&["id", "name", "pluginName", "type", "forwardPort", "props", "namespaceId"])
        }
        Group::AiProxyApiKey => plain(&[
            "realApiKey",
            "proxyApiKey",
            "description",
            "enabled",
            "namespaceId",
            "selectorId",
        ]),
        Group::DiscoverUpstream => Shape {
            members: &[
                "selectorId",
                "pluginName",
                "selectorName",
                "upstreamDataList",
                "namespaceId",
                "discoveryHandlerId",
            ],
            lists: &[("upstreamDataList", UPSTREAM)],
        },
    }
}

/// The objects of one group of a namespace.
pub(super) struct Objectified {
    /// What the digest is taken over.
    text: String,
    group: Group,
}

impl Objectified {
    /// Writes them.
    pub(super) fn new(namespace: &str, state: &Objects, group: Group) -> Self {
        let text = match group {
            Group::AppAuth => list(namespace, &state.app_auths),
            Group::Plugin => list(namespace, &state.plugins),
            Group::Rule => list(namespace, &state.rules),
            Group::Selector => list(namespace, &state.selectors),
            Group::MetaData => list(namespace, &state.metadata),
            // Raw ports; what only announces the upstreams of a selector is not in this list.
            Group::ProxySelector => {
                let announced = state.bindings.iter().map(|binding| &binding.announcement);
                list(namespace, announced.filter(|port| port.proxy_type.is_some()))
            }
            Group::AiProxyApiKey => list(namespace, &state.api_keys),
            Group::DiscoverUpstream => {
                list(namespace, state.bindings.iter().map(|binding| &binding.upstreams))
            }
        };
        Self { text, group }
    }

    /// The digest, 32 lower-case hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        digest(&self.text)
    }

    /// What gateways get.
    pub(super) fn full(&self) -> Bytes {
        let objects: Vec<Value> =
            serde_json::from_str(&self.text).expect("a text of ours is a list");
        let shape = shape(self.group);
        let full: Vec<Value> = objects.into_iter().map(|one| filled(one, &shape)).collect();
        serde_json::to_vec(&full).expect("values are written as they were read").into()
    }
}

fn list<'a, T: Object + 'a>(namespace: &str, objects: impl IntoIterator<Item = &'a T>) -> String {
    let completed: Vec<T> = objects
        .into_iter()
        .map(|object| {
            let mut object = object.clone();
            object.complete(namespace);
            object.in_sequence();
            object
        })
        .collect();
    serde_json::to_string(&completed).expect("objects hold only strings, numbers and lists")
}

/// The digest of a list, written as the reference's library writes it: what means something in a
/// page of HTML is escaped. In compact JSON these characters occur in strings only.
fn digest(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for character in text.chars() {
        match character {
            '<' | '>' | '&' | '=' | '\'' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    let mut hex = String::with_capacity(32);
    for byte in Md5::digest(escaped.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The object with all its members, in the order in which they are recorded.
fn filled(object: Value, shape: &Shape) -> Value {
    let Value::Object(mut given) = object else { return object };
    let mut members = Map::new();
    for name in shape.members {
        members.insert((*name).to_owned(), given.remove(*name).unwrap_or_default());
    }
    for (name, inner) in shape.lists {
        if let Some(Value::Array(list)) = members.get_mut(*name) {
            list.iter_mut().for_each(|one| *one = filled(one.take(), inner));
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use longmen_core::model::{DEFAULT_NAMESPACE, Plugin};

    use super::*;

    const RECORDED: &str =
        include_str!("../../../tests/golden/http-polling/fetch-and-listen.jsonl");

    /// The group `name` of the recorded fetch `id`.
    fn recorded(id: &str, name: &str) -> Value {
        let lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let line = lines.into_iter().find(|line| line["id"] == id).unwrap();
        let text = line["text"].as_str().unwrap().replace("<ms>", "1");
        serde_json::from_str::<Value>(&text).unwrap()["data"][name].clone()
    }

    #[test]
    fn plugins_have_the_recorded_digest_and_the_recorded_members() {
        let group = recorded("fetch-one", "PLUGIN");
        let plugins: Vec<Plugin> = serde_json::from_value(group["data"].clone()).unwrap();
        assert!(plugins.len() > 30);
        let state = Objects { plugins, ..Objects::default() };
        let ours = Objectified::new(DEFAULT_NAMESPACE, &state, Group::Plugin);
        assert_eq!(ours.digest(), group["md5"]);
        assert_eq!(ours.full(), serde_json::to_string(&group["data"]).unwrap());
    }

    #[test]
    fn an_empty_group_is_an_empty_list_with_the_recorded_digest() {
        let empty = recorded("fetch-all", "RULE");
        for group in Group::ALL {
            let ours = Objectified::new("ns", &Objects::default(), group);
            assert_eq!(
                (ours.digest(), ours.full()),
                (empty["md5"].as_str().unwrap().to_owned(), Bytes::from_static(b"[]"))
            );
        }
    }

    #[test]
    fn selectors_and_rules_have_the_recorded_members() {
        for (id, group) in [
            ("fetch-selector", Group::Selector),
            ("fetch-rule-meta", Group::Rule),
            ("fetch-rule-meta", Group::MetaData),
        ] {
            let list = recorded(id, group.name())["data"].clone();
            let objects = serde_json::from_value;
            let mut state = Objects::default();
            match group {
                Group::Selector => state.selectors = serde_json::from_value(list.clone()).unwrap(),
                Group::Rule => state.rules = serde_json::from_value(list.clone()).unwrap(),
                _ => state.metadata = objects(list.clone()).unwrap(),
            }
            let ours = Objectified::new(DEFAULT_NAMESPACE, &state, group).full();
            // A text, so that the order of members counts, too.
            assert_eq!(ours, serde_json::to_string(&list).unwrap(), "{id} {group}");
        }
    }
}
