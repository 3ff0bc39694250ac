//! The check before conditions are stored.

use super::{compiler, condition};
use crate::condition::{CompileFault, ConditionField, validate};

#[test]
fn refuses_with_the_text_of_the_reference() {
    let starts = "The URI must start with '/'";
    let blank = "The URI condition value cannot be empty.";
    let rows = [
        (("uri", "=", "a"), starts),
        (("uri", "startsWith", "a/"), starts),
        (("uri", "endsWith", "200"), starts),
        (("uri", "match", " /x"), starts),
        (("uri", "exclude", "x"), starts),
        (("uri", "contains", "x"), starts),
        (("uri", "=", ""), blank),
        (("uri", "regex", "  "), blank),
        (("uri", "pathPattern", "null"), blank),
        (("uri", ">", ""), blank),
        (("uri", "match", "/a b"), "The URI cannot contain whitespaces. Current value: /a b"),
        (("uri", "=", "/x "), "The URI cannot contain whitespaces. Current value: /x "),
        (("uri", "=", "/x\t"), "The URI cannot contain whitespaces. Current value: /x\t"),
        (("uri", "isBlank", "/a"), "The URI must be blank"),
        (
            ("uri", "pathPattern", "/a/**/c"),
            "No more pattern data allowed after {*...} or ** pattern element",
        ),
        (("uri", "regex", "["), "error parsing regexp: missing closing ]: `[`"),
        (
            ("uri", "regex", "/(?=a).*"),
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
        ),
        (("uri", "regex", "/a("), "error parsing regexp: missing closing ): `/a(`"),
        (("uri", "regex", "/a)"), "error parsing regexp: unexpected ): `/a)`"),
        (
            ("uri", "regex", "*a"),
            "error parsing regexp: missing argument to repetition operator: `*`",
        ),
    ];
    for ((param_type, operator, value), text) in rows {
        let good = condition("uri", "match", "/", "/a/**");
        let bad = condition(param_type, operator, "/", value);
        let faults = validate(&mut compiler(), &[good, bad.clone()]);
        let [fault] = faults.as_slice() else { panic!("{bad:?}: {faults:?}") };
        assert_eq!(fault.stock.as_deref(), Some(text), "{bad:?}");
        assert_eq!((fault.index, fault.field), (1, ConditionField::ParamValue), "{bad:?}");
        assert_eq!(fault.value, bad.param_value, "{bad:?}");
    }
}

#[test]
fn refuses_what_the_reference_stores_and_no_gateway_can_use() {
    for (bad, field) in [
        (condition("query", ">", "a", "1"), ConditionField::Operator),
        (condition("path", "=", "a", "1"), ConditionField::ParamType),
        (condition("header", "regex", "a", "("), ConditionField::ParamValue),
        (condition("uri", "match", "/", "/{x:[}"), ConditionField::ParamValue),
        (condition("uri", "pathPattern", "/", "/{x:(a)}"), ConditionField::ParamValue),
        (condition("uri", "TimeAfter", "/", "soon"), ConditionField::ParamValue),
        (condition("header", "=", "a", ""), ConditionField::ParamValue),
        (condition("cookie", "=", "", "1"), ConditionField::ParamName),
    ] {
        let faults = validate(&mut compiler(), std::slice::from_ref(&bad));
        let [fault] = faults.as_slice() else { panic!("{bad:?}: {faults:?}") };
        assert_eq!(fault.field, field, "{bad:?}");
    }
}

#[test]
fn lets_the_rest_through() {
    let list = [
        condition("uri", "=", "/", "/a"),
        condition("uri", "match", "/", "/a/**"),
        condition("uri", "pathPattern", "/", "/a/{id}"),
        condition("uri", "regex", "/", "/a/.*"),
        condition("uri", "isBlank", "/", ""),
        condition("uri", "isBlank", "/", "null"),
        condition("uri", "TimeBefore", "/", "2030-01-01 00:00:00"),
        condition("header", "isBlank", "a", "null"),
        condition("domain", "=", "x", "a.test"),
        condition("req_method", "=", "x", "GET"),
    ];
    assert_eq!(validate(&mut compiler(), &list), []);
}

#[test]
fn a_fault_names_the_condition_the_member_the_value_and_the_expectation() {
    let list = [condition("uri", "=", "/", "/a"), condition("header", "=", "n", "null")];
    let faults = validate(&mut compiler(), &list);
    let texts: Vec<String> = faults.iter().map(CompileFault::to_string).collect();
    assert_eq!(texts, ["condition 1: paramValue is missing, expected a text that is not blank"]);
    let faults = validate(&mut compiler(), &[condition("acme", "=", "n", "1")]);
    let text = faults[0].to_string();
    assert!(
        text.starts_with(r#"condition 0: paramType is "acme", expected one of uri, "#),
        "{text}"
    );
}
