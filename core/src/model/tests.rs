//! Reader rules of the wire, case by case.

use serde_json::json;

use super::{Plugin, Rule, Selector, Upstream};

#[test]
fn integers_come_whole_quoted_or_as_floats() {
    for (sort, expected) in [(json!(7), 7), (json!(7.0), 7), (json!("7"), 7), (json!("7.0"), 7)] {
        let plugin: Plugin =
            serde_json::from_value(json!({"name": "divide", "sort": sort})).unwrap();
        assert_eq!(plugin.sort, Some(expected));
    }
    for bad in [json!(7.5), json!("seven"), json!(4_294_967_296_i64), json!([7])] {
        let read = serde_json::from_value::<Plugin>(json!({"name": "divide", "sort": bad}));
        assert!(read.is_err(), "{bad} must be refused");
    }
}

#[test]
fn booleans_come_plain_or_quoted_but_not_as_numbers() {
    let read = |v| serde_json::from_value::<Plugin>(json!({"name": "divide", "enabled": v}));
    assert!(read(json!("true")).unwrap().enabled);
    assert!(!read(json!(null)).unwrap().enabled);
    assert!(read(json!(1)).is_err());
    assert!(read(json!("yes")).is_err());
}

#[test]
fn strings_take_numbers_and_booleans_but_no_objects() {
    let read = |v| serde_json::from_value::<Rule>(json!({"id": "1", "handle": v}));
    assert_eq!(read(json!(5)).unwrap().handle.as_deref(), Some("5"));
    assert_eq!(read(json!(null)).unwrap().handle, None);
    assert!(read(json!({"retry": 3})).is_err());
}

#[test]
fn a_selector_without_continued_goes_on_to_its_rules() {
    let absent: Selector = serde_json::from_value(json!({"id": "1"})).unwrap();
    let null: Selector = serde_json::from_value(json!({"id": "1", "continued": null})).unwrap();
    assert!(absent.continued && null.continued);
}

#[test]
fn spellings_of_the_wire_are_kept() {
    let selector = json!({"pluginName": "divide", "matchMode": 0, "type": 1, "logged": true,
        "continued": true, "conditionList": [], "matchRestful": false, "id": "1", "enabled": true});
    let read: Selector = serde_json::from_value(selector.clone()).unwrap();
    assert!(read.logged);
    assert_eq!(serde_json::to_value(&read).unwrap(), selector);
    let rule = json!({"pluginName": "divide", "selectorId": "1", "matchMode": 0, "loged": true,
        "conditionDataList": [], "matchRestful": false, "id": "2", "enabled": true});
    let read: Rule = serde_json::from_value(rule.clone()).unwrap();
    assert!(read.logged);
    assert_eq!(serde_json::to_value(&read).unwrap(), rule);
}

#[test]
fn upstream_props_are_json_text_with_quoted_values() {
    let upstream = Upstream {
        props: Some(r#"{"warmup":"600","gray":"true","healthCheckEnabled":"false"}"#.into()),
        ..Upstream::default()
    };
    let props = upstream.properties();
    assert_eq!((props.warmup, props.gray, props.health_check_enabled), (600, true, false));
    let unreadable = Upstream { props: Some("not json".into()), ..Upstream::default() };
    assert_eq!(unreadable.properties().warmup, 10);
}
