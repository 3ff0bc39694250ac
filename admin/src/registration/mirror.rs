//! The settings of selectors whose gateways read the upstreams there.
//!
//! Stock gateways take the upstreams of `tars` and `dubbo` from the settings of the selector, those of
//! the other plugins from the list of upstreams. The list is what counts here; the settings follow it.

use longmen_core::model::{Selector, Upstream, UpstreamList};
use longmen_core::sync::{Event, Group};
use longmen_db::repository::selector;
use longmen_db::{Change, Operation, UnitOfWork};
use serde_json::{Value, json};

use super::held::UP;
use crate::error::ApiResult;

/// Brings the settings of a selector up to its list, if its plugin keeps upstreams there.
///
/// # Errors
/// Failures of the store.
pub(crate) async fn follow(
    uow: &mut UnitOfWork,
    before: &Selector,
    list: &UpstreamList,
) -> ApiResult<()> {
    let entry: fn(&Upstream, i64) -> Value = match before.plugin_name.as_str() {
        "dubbo" => dubbo,
        "tars" => tars,
        _ => return Ok(()),
    };
    let stored = before.handle.as_deref().unwrap_or_default();
    let now_ms = uow.now_ms();
    let Some(handle) = merged(stored, list.upstreams(), |one| entry(one, now_ms)) else {
        return Ok(());
    };
    if handle == stored {
        return Ok(());
    }
    selector::set_handle(uow, &before.id, Some(&handle)).await?;
    let after = Selector { handle: Some(handle), ..before.clone() };
    let namespace = after.namespace_id.clone().unwrap_or_default();
    let change = Change::new(namespace, Group::Selector, &*after.id, Operation::Update);
    uow.record(change.stock_event(Event::Update).before(before).after(&after));
    Ok(())
}

/// One entry per upstream. What a person added to the entry of an address stays; none if the settings
/// are no list, which is then a person's.
fn merged(stored: &str, list: &[Upstream], entry: impl Fn(&Upstream) -> Value) -> Option<String> {
    let known: Vec<Value> = match stored.trim() {
        "" => Vec::new(),
        text => serde_json::from_str(text).ok()?,
    };
    let entries = list.iter().map(|upstream| {
        let found = known.iter().find(|entry| entry["upstreamUrl"] == upstream.url.as_str());
        let mut entry = found.cloned().unwrap_or_else(|| entry(upstream));
        entry["status"] = (upstream.status == UP).into();
        entry
    });
    Some(Value::Array(entries.collect()).to_string())
}

fn tars(upstream: &Upstream, now_ms: i64) -> Value {
    json!({
        "weight": upstream.weight, "warmup": 600_000, "upstreamUrl": upstream.url,
        "status": true, "timestamp": now_ms, "gray": false, "healthCheckEnabled": true,
    })
}

fn dubbo(upstream: &Upstream, now_ms: i64) -> Value {
    json!({
        "port": 0, "weight": upstream.weight, "warmup": 600_000, "protocol": "dubbo://",
        "upstreamHost": "localhost", "upstreamUrl": upstream.url, "status": true, "timestamp": now_ms,
        "gray": false, "healthCheckEnabled": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str, status: i32) -> Upstream {
        Upstream { url: url.to_owned(), status, weight: 50, ..Upstream::default() }
    }

    fn at_7(one: &Upstream) -> Value {
        dubbo(one, 7)
    }

    #[test]
    fn the_settings_follow_the_list_and_keep_what_a_person_added() {
        let made = merged("", &[upstream("a:1", 0)], at_7).unwrap();
        assert!(made.contains("\"protocol\":\"dubbo://\""), "{made}");
        let edited = made.replace("\"gray\":false", "\"gray\":true,\"group\":\"g\"");
        let list = [upstream("a:1", 1), upstream("b:1", 0)];
        let both = merged(&edited, &list, at_7).unwrap();
        let both: Value = serde_json::from_str(&both).unwrap();
        assert_eq!((&both[0]["group"], &both[0]["status"]), (&json!("g"), &json!(false)));
        assert_eq!((&both[1]["upstreamUrl"], &both[1]["status"]), (&json!("b:1"), &json!(true)));
        assert_eq!(merged(&edited, &[], at_7).unwrap(), "[]");
        assert_eq!(merged("{\"gray\":true}", &list, at_7), None, "a person's");
    }
}
