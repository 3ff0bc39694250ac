//! Against what a stock admin was recorded to answer and push.

use longmen_core::model::Rule;
use serde_json::{Value, json};

use super::*;
use crate::api::recorded;
use crate::extract::Violations;

fn read(body: &Value) -> RuleRequest {
    serde_json::from_value(body.clone()).unwrap()
}

#[test]
fn field_rules_are_the_recorded_ones() {
    let mut refused = 0;
    for call in recorded::calls("POST /rule").into_iter().filter(|call| call.what == "POST /rule") {
        let mut rules = Violations::new();
        read(&call.body).rules(&mut rules);
        let expected = recorded::without_look_ups(&call.message);
        refused += usize::from(!expected.is_empty());
        assert_eq!(recorded::violated(rules), expected, "seq {}", call.seq);
    }
    assert!(refused >= 5, "only {refused} refusals were compared");
}

/// A header condition without a value: the reference stores it, here it is refused.
const WITHOUT_VALUE: u64 = 140;

#[test]
fn what_is_stored_is_what_a_stock_admin_pushed() {
    let mut compared = 0;
    for call in recorded::calls("POST /rule").into_iter().filter(|call| call.what == "POST /rule") {
        let [(_, pushed)] = call.frames.as_slice() else { continue };
        assert_eq!(call.code, 200);
        if call.seq == WITHOUT_VALUE {
            continue;
        }
        let draft = read(&call.body).draft().unwrap();
        let ours = draft.to_rule(pushed["id"].as_str().unwrap(), "divide");
        let mut theirs: Rule = serde_json::from_value(pushed.clone()).unwrap();
        theirs.before_condition_list = None;
        assert_eq!(ours, theirs, "seq {}", call.seq);
        compared += 1;
    }
    assert!(compared >= 3, "only {compared} rules were compared");
}

#[test]
fn elements_of_the_list_are_checked() {
    let mut rules = Violations::new();
    read(&json!({"selectorId": "1", "matchMode": 0, "name": "n", "enabled": "true", "loged": true,
                 "sort": "5", "matchRestful": false, "namespaceId": "x",
                 "ruleConditions": [{"paramType": "uri", "operator": "=", "paramName": "/"}, {}]}))
    .rules(&mut rules);
    assert_eq!(
        recorded::violated(rules),
        [
            "ruleConditions[1].operator: must not be blank",
            "ruleConditions[1].paramName: must not be blank",
            "ruleConditions[1].paramType: must not be blank",
        ]
    );
}

#[test]
fn a_match_mode_that_is_none_is_refused() {
    assert_eq!(
        read(&json!({"matchMode": 3})).draft().unwrap_err(),
        "matchMode: 3 is none; expected 0 (and) or 1 (or)"
    );
}
