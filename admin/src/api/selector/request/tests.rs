//! Against what a stock admin was recorded to answer and push.

use longmen_core::model::Selector;
use serde_json::{Value, json};

use super::*;
use crate::api::recorded;
use crate::extract::Violations;

fn read(body: &Value) -> SelectorRequest {
    serde_json::from_value(body.clone()).unwrap()
}

#[test]
fn field_rules_are_the_recorded_ones() {
    let mut refused = 0;
    for call in recorded::calls("POST /selector").into_iter().filter(|call| call.body.is_object()) {
        if call.what != "POST /selector" {
            continue;
        }
        let mut rules = Violations::new();
        read(&call.body).rules(&mut rules);
        let expected = recorded::without_look_ups(&call.message);
        refused += usize::from(!expected.is_empty());
        assert_eq!(recorded::violated(rules), expected, "seq {}", call.seq);
    }
    assert!(refused >= 5, "only {refused} refusals were compared");
}

#[test]
fn rules_over_several_members_are_the_recorded_ones() {
    let mut refused = 0;
    for call in recorded::calls("POST /selector").into_iter().filter(|call| call.body.is_object()) {
        if call.message.starts_with("if type is custom") {
            refused += 1;
            assert_eq!(read(&call.body).draft().unwrap_err(), call.message, "seq {}", call.seq);
        }
    }
    assert_eq!(refused, 2);
}

#[test]
fn what_is_stored_is_what_a_stock_admin_pushed() {
    let mut compared = 0;
    for call in recorded::calls("POST /selector") {
        let [(group, pushed)] = call.frames.as_slice() else { continue };
        if call.what != "POST /selector" || group != "SELECTOR" {
            continue;
        }
        let draft = read(&call.body).draft().unwrap();
        let ours = draft.to_selector(pushed["id"].as_str().unwrap(), "divide");
        let mut theirs: Selector = serde_json::from_value(pushed.clone()).unwrap();
        theirs.before_condition_list = None;
        assert_eq!(ours, theirs, "seq {}", call.seq);
        compared += 1;
    }
    assert!(compared >= 4, "only {compared} selectors were compared");
}

#[test]
fn our_own_refusals_name_field_value_and_expectation() {
    let base = json!({"type": 0, "matchMode": 7, "selectorConditions": []});
    assert!(read(&base).draft().is_ok(), "a full selector's mode is not looked at");
    for (body, text) in [
        (json!({"type": 2}), "type: 2 is none; expected 0 (full) or 1 (custom)"),
        (
            json!({"type": 0}),
            "selectorConditions: null is no list; expected the conditions, [] for none",
        ),
        (
            json!({"type": 1, "matchMode": 2, "selectorConditions": [
                {"paramType": "uri", "operator": "=", "paramName": "/", "paramValue": "/a"}]}),
            "matchMode: 2 is none; expected 0 (and) or 1 (or)",
        ),
        (
            json!({"type": 1, "matchMode": 0, "selectorConditions": [{"paramName": "/"}]}),
            "if type is custom, paramType is not empty",
        ),
        (
            json!({"type": 1, "matchMode": 0, "selectorConditions": [{"paramType": "uri"}]}),
            "if type is custom, paramName is not empty",
        ),
    ] {
        assert_eq!(read(&body).draft().unwrap_err(), text);
    }
}

#[test]
fn only_own_condition_ids_are_kept_and_values_are_trimmed() {
    let request = read(&json!({"type": 1, "matchMode": 0, "selectorConditions": [
        {"id": "a", "paramType": "header", "operator": "=", "paramName": "x", "paramValue": " 1 "},
        {"id": "a", "paramType": "header", "operator": "=", "paramName": "y", "paramValue": "2"},
        {"id": "foreign", "paramType": "header", "operator": "=", "paramName": "z"},
    ]}));
    let kept = request.draft().unwrap().common.new_conditions(&["a".to_owned(), "b".to_owned()]);
    let ids: Vec<_> = kept.iter().map(|new| new.id.as_deref()).collect();
    assert_eq!(ids, [Some("a"), None, None]);
    assert_eq!(kept[0].condition.param_value.as_deref(), Some("1"));
    assert_eq!(kept[2].condition.param_value.as_deref(), Some(""));
}
