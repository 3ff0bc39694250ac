//! The data in force, in the shapes of the reference: arrays of one object.

use std::collections::BTreeMap;

use longmen_core::mask::{MASK, is_secret};
use longmen_core::model::{Condition, MetaData, Plugin, Rule, Selector};
use longmen_core::snapshot::ConfigState;
use serde_json::{Map, Value, json};

use crate::config::ClientStrategy;

/// What are plugins there and fixed steps of every request here, with their places.
///
/// Source: ShenYu 2.7.1, built-in order.
pub(super) const fn built_in(strategy: ClientStrategy) -> [(&'static str, i32); 4] {
    let client = match strategy {
        ClientStrategy::Hyper => "nettyHttpClient",
        ClientStrategy::Reqwest => "webClient",
    };
    [("global", -1), ("uri", 205), (client, 210), ("response", 420)]
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Plugins,
    PluginData,
    SelectorData,
    RuleData,
    Metadata,
    /// A cache; what it holds is nobody's business.
    Cache,
}

impl What {
    /// By the path of the request in its canonical form.
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path.strip_prefix("/actuator/")? {
            "plugins" => Self::Plugins,
            "pluginData" => Self::PluginData,
            "selectorData" => Self::SelectorData,
            "ruleData" => Self::RuleData,
            "metadata" => Self::Metadata,
            "metadataCache" | "selectorMatchCache" | "ruleMatchCache" => Self::Cache,
            _ => return None,
        })
    }
}

/// The answer's text.
pub(super) fn show(what: What, state: &ConfigState, plugins: &[(&'static str, i32)]) -> String {
    let object: Map<String, Value> = match what {
        What::Plugins => plugins
            .iter()
            .map(|(name, order)| (format!("{}@{:x}", class(name), hash(name)), json!(order)))
            .collect(),
        What::PluginData => {
            state.plugins.iter().map(|(name, data)| (name.clone(), plugin(data))).collect()
        }
        What::SelectorData => by_order(&state.selectors)
            .into_iter()
            .map(|(name, of_plugin)| {
                let mut list: Vec<&Selector> = of_plugin.values().map(|one| &**one).collect();
                list.sort_by_key(|one| one.sort.unwrap_or_default());
                (name.clone(), list.into_iter().map(selector).collect())
            })
            .collect(),
        What::RuleData => by_order(&state.rules)
            .into_iter()
            .map(|(selector, of_selector)| {
                let mut list: Vec<&Rule> = of_selector.values().map(|one| &**one).collect();
                list.sort_by_key(|one| one.sort.unwrap_or_default());
                (selector.clone(), list.into_iter().map(rule).collect())
            })
            .collect(),
        What::Metadata => {
            state.metadata.values().map(|one| (one.path.clone(), metadata(one))).collect()
        }
        What::Cache => Map::new(),
    };
    Value::from(vec![Value::Object(object)]).to_string()
}

fn by_order<T>(map: &std::collections::HashMap<String, T>) -> BTreeMap<&String, &T> {
    map.iter().collect()
}

fn plugin(plugin: &Plugin) -> Value {
    json!({
        "id": plugin.id,
        "name": plugin.name,
        "config": plugin.config.as_deref().map(masked),
        "role": plugin.role,
        "enabled": plugin.enabled,
        "sort": plugin.sort,
        "pluginJar": plugin.plugin_jar,
        "namespaceId": plugin.namespace_id,
    })
}

fn selector(selector: &Selector) -> Value {
    json!({
        "id": selector.id,
        "pluginId": selector.plugin_id,
        "pluginName": selector.plugin_name,
        "name": selector.name,
        "matchMode": selector.match_mode,
        "type": selector.selector_type,
        "sort": selector.sort,
        "enabled": selector.enabled,
        "logged": selector.logged,
        "continued": selector.continued,
        "handle": selector.handle.as_deref().map(masked),
        "conditionList": conditions(selector.condition_list.as_deref()),
        "beforeConditionList": conditions(selector.before_condition_list.as_deref()),
        "matchRestful": selector.match_restful,
        "namespaceId": selector.namespace_id,
    })
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "name": rule.name,
        "pluginName": rule.plugin_name,
        "selectorId": rule.selector_id,
        "matchMode": rule.match_mode,
        "sort": rule.sort,
        "enabled": rule.enabled,
        "loged": rule.logged,
        "handle": rule.handle.as_deref().map(masked),
        "conditionDataList": conditions(rule.condition_list.as_deref()),
        "beforeConditionDataList": conditions(rule.before_condition_list.as_deref()),
        "matchRestful": rule.match_restful,
        "namespaceId": rule.namespace_id,
    })
}

fn conditions(list: Option<&[Condition]>) -> Value {
    list.map_or(Value::Null, |list| {
        list.iter()
            .map(|one| {
                json!({
                    "paramType": one.param_type,
                    "operator": one.operator,
                    "paramName": one.param_name,
                    "paramValue": one.param_value,
                })
            })
            .collect()
    })
}

fn metadata(data: &MetaData) -> Value {
    json!({
        "id": data.id,
        "appName": data.app_name,
        "contextPath": data.context_path,
        "path": data.path,
        "rpcType": data.rpc_type,
        "serviceName": data.service_name,
        "methodName": data.method_name,
        "parameterTypes": data.parameter_types,
        "rpcExt": data.rpc_ext,
        "enabled": data.enabled,
        "namespaceId": data.namespace_id,
    })
}

/// Settings as they are, but for the values of members that may be secret.
fn masked(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    // Where nothing is masked it stays as it came, to the blank.
    if mask(&mut value) { value.to_string() } else { text.to_owned() }
}

/// Masks; says whether there was anything.
fn mask(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => members.iter_mut().fold(false, |any, (name, value)| {
            if is_secret(name) && (value.is_string() || value.is_number()) {
                let empty = value.as_str() == Some("");
                if !empty {
                    *value = MASK.into();
                }
                return any || !empty;
            }
            mask(value) || any
        }),
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask(item).then_some(())).count() > 0
        }
        _ => false,
    }
}

/// The label by which clients of the reference look a plugin up.
fn class(name: &str) -> String {
    let class = match name {
        "divide" => "divide.DividePlugin",
        "websocket" => "websocket.WebSocketPlugin",
        "grpc" => "grpc.GrpcPlugin",
        "contextPath" => "context.path.ContextPathPlugin",
        "rewrite" => "rewrite.RewritePlugin",
        "redirect" => "redirect.RedirectPlugin",
        "request" => "request.RequestPlugin",
        "waf" => "waf.WafPlugin",
        "sign" => "sign.SignPlugin",
        "jwt" => "jwt.JwtPlugin",
        "oauth2" => "oauth2.OAuth2Plugin",
        "keyAuth" => "key.auth.KeyAuthPlugin",
        "basicAuth" => "basic.auth.BasicAuthPlugin",
        "rateLimiter" => "ratelimiter.RateLimiterPlugin",
        "resilience4j" => "resilience4j.Resilience4JPlugin",
        "hystrix" => "hystrix.HystrixPlugin",
        "sentinel" => "sentinel.SentinelPlugin",
        "paramMapping" => "param.mapping.ParamMappingPlugin",
        "modifyResponse" => "modify.response.ModifyResponsePlugin",
        "cryptorRequest" => "cryptor.plugin.CryptorRequestPlugin",
        "cryptorResponse" => "cryptor.plugin.CryptorResponsePlugin",
        "cache" => "cache.CachePlugin",
        "mock" => "mock.MockPlugin",
        "generalContext" => "general.context.GeneralContextPlugin",
        "metrics" => "metrics.MetricsPlugin",
        "loggingConsole" => "logging.console.LoggingConsolePlugin",
        "dubbo" => "apache.dubbo.ApacheDubboPlugin",
        "sofa" => "sofa.SofaPlugin",
        "loggingKafka" => "logging.kafka.LoggingKafkaPlugin",
        "loggingRocketMQ" => "logging.rocketmq.LoggingRocketMQPlugin",
        "global" => "global.GlobalPlugin",
        "uri" => "uri.URIPlugin",
        "nettyHttpClient" => "httpclient.NettyHttpClientPlugin",
        "webClient" => "httpclient.WebClientPlugin",
        "response" => "response.ResponsePlugin",
        other => return format!("longmen.{other}"),
    };
    format!("org.apache.shenyu.plugin.{class}")
}

/// Stands for the identity of an object, which is another one in each process there.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn state() -> ConfigState {
        let mut state = ConfigState::default();
        let divide = Plugin {
            id: "5".into(),
            name: "divide".into(),
            enabled: true,
            config: Some("{\"password\": \"s3cret\", \"mode\":\"a\"}".into()),
            ..Plugin::default()
        };
        state.plugins.insert("divide".into(), Arc::new(divide));
        let selector =
            Selector { id: "s".into(), plugin_name: "divide".into(), ..Selector::default() };
        state.selectors.entry("divide".into()).or_default().insert("s".into(), Arc::new(selector));
        let data = MetaData { id: "m".into(), path: "/a".into(), ..MetaData::default() };
        state.metadata.insert("m".into(), Arc::new(data));
        state
    }

    fn shown(what: What) -> Value {
        serde_json::from_str(&show(what, &state(), &[("divide", 50)])).unwrap()
    }

    #[test]
    fn an_array_of_one_object_with_the_members_of_the_reference() {
        let plugins = shown(What::PluginData);
        assert_eq!(plugins.as_array().unwrap().len(), 1);
        let divide = plugins[0]["divide"].as_object().unwrap();
        assert_eq!(divide.len(), 8);
        assert_eq!(divide["namespaceId"], Value::Null);
        let selectors = shown(What::SelectorData);
        assert_eq!(selectors[0]["divide"][0].as_object().unwrap().len(), 15);
        let metadata = shown(What::Metadata);
        assert_eq!(metadata[0]["/a"]["contextPath"], Value::Null);
        assert_eq!(metadata[0]["/a"].as_object().unwrap().len(), 11);
        assert_eq!(shown(What::Cache), json!([{}]));
        let classes = shown(What::Plugins);
        let (name, order) = classes[0].as_object().unwrap().iter().next().unwrap();
        assert!(name.starts_with("org.apache.shenyu.plugin.divide.DividePlugin@"), "{name}");
        assert_eq!(order, 50);
    }

    #[test]
    fn secrets_are_masked_and_nothing_else_is_touched() {
        let config = shown(What::PluginData)[0]["divide"]["config"].as_str().unwrap().to_owned();
        assert_eq!(config, r#"{"password":"******","mode":"a"}"#);
        assert_eq!(masked("{ \"a\" : 1 }"), "{ \"a\" : 1 }");
        assert_eq!(masked("no json"), "no json");
        assert_eq!(masked(r#"{"key":""}"#), r#"{"key":""}"#);
        assert_eq!(masked(r#"[{"appSecret":1}]"#), r#"[{"appSecret":"******"}]"#);
    }

    #[test]
    fn only_the_paths_of_data_are_taken() {
        assert_eq!(What::of("/actuator/pluginData"), Some(What::PluginData));
        assert_eq!(What::of("/actuator/health"), None);
        assert_eq!(What::of("/pluginData"), None);
    }
}
