//! Every operator on every kind of value.

use jiff::tz::TimeZone;

use super::{Request, compile, compiler, condition, holds};
use crate::condition::{Compiler, ConditionField};

#[test]
fn text_operators_on_a_header() {
    let rows: &[(&str, &str, &[&str], &[&str])] = &[
        ("=", "prod", &["prod"], &["PROD", " prod", "prod2", ""]),
        ("=", "  prod ", &["prod"], &["  prod "]),
        ("match", "od", &["prod"], &["od1".split_at(1).1, "PROD"]),
        ("pathPattern", "ro", &["prod"], &["pd"]),
        ("contains", "a.b+c(1)", &["zz-a.b+c(1)-zz"], &["aXb+c(1)", "a.b"]),
        ("startsWith", "v[1]", &["v[1].2"], &["v1.2", "xv[1]"]),
        ("endsWith", "d", &["prod"], &["prods"]),
        ("exclude", "foo", &["bar"], &["foobar", "", "  "]),
        ("regex", r"\d{2}", &["12"], &["123", "x12", "1"]),
        ("isBlank", "", &["", "  ", "\t"], &["1"]),
    ];
    for (operator, value, hits, misses) in rows {
        let condition = condition("header", operator, "X-Env", value);
        for hit in *hits {
            let request = Request::get("/a").header("x-env", hit);
            assert!(holds(&condition, &request), "{operator} {value} should hold for {hit:?}");
        }
        for miss in *misses {
            let request = Request::get("/a").header("x-env", miss);
            assert!(!holds(&condition, &request), "{operator} {value} should not: {miss:?}");
        }
        let missing = holds(&condition, &Request::get("/a"));
        assert_eq!(missing, *operator == "isBlank", "{operator} on a missing header");
    }
}

#[test]
fn operators_on_the_path() {
    let rows: &[(&str, &str, &[&str], &[&str])] = &[
        ("=", "/anything", &["/anything"], &["/anythin", "/anything/x", "/get", "/ANYTHING"]),
        ("startsWith", "/anything/xx", &["/anything/xx", "/anything/xx/yy"], &["/anything/x"]),
        ("endsWith", "/200", &["/status/200", "/anything/200"], &["/anything", "/status/300"]),
        ("contains", "n/find", &["/demo/n/findById"], &["/n"]),
        ("regex", r"/a/\d+", &["/a/12"], &["/a/12x", "/b/a/12"]),
        ("match", " /a/** ", &["/a/1"], &["/b"]),
        ("match", "/a/**, /b/*,,", &["/a/1", "/b/1"], &["/c", "/b/1/2"]),
        ("match", "/a/{id:[0-9]{1,2}},/b", &["/a/12", "/b"], &["/a/123", "/a/x"]),
        ("exclude", "/a/**", &["/b"], &["/a/1"]),
        ("exclude", "/a/**,/b", &["/c"], &["/a/1", "/b"]),
        ("pathPattern", "/a/{id}", &["/a/1"], &["/a/1/2"]),
        ("isBlank", "", &["", " "], &["/"]),
    ];
    for (operator, value, hits, misses) in rows {
        // The name means nothing here: stock consoles write a slash, others nothing.
        for name in ["/", "null", "uri"] {
            let condition = condition("uri", operator, name, value);
            for hit in *hits {
                assert!(holds(&condition, &Request::get(hit)), "{operator} {value} on {hit}");
            }
            for miss in *misses {
                assert!(!holds(&condition, &Request::get(miss)), "{operator} {value} on {miss}");
            }
        }
    }
}

#[test]
fn times_compare_the_clock_for_paths_and_blank_names() {
    // The request comes at 2026-11-30 20:00:00 in the zone of the compiler.
    let rows = [
        ("TimeBefore", "2026-11-30 20:00:01", true),
        ("TimeBefore", "2026-11-30 20:00:00", false),
        ("TimeBefore", "2026-11-30 12:00:01", false),
        ("TimeAfter", "2026-11-30 19:59:59", true),
        ("TimeAfter", "2026-11-30 20:00:00", false),
        ("TimeAfter", "2030-01-01 00:00:00", false),
    ];
    for (operator, value, expected) in rows {
        for (param_type, name) in
            [("uri", "/"), ("uri", "null"), ("uri", ""), ("header", ""), ("query", "null")]
        {
            let condition = condition(param_type, operator, name, value);
            let actual = holds(&condition, &Request::get("/a"));
            assert_eq!(actual, expected, "{param_type} {name} {operator} {value}");
        }
    }
}

#[test]
fn times_compare_a_named_value() {
    let before = condition("header", "TimeBefore", "t", "2030-01-01 00:00:00");
    let after = condition("header", "TimeAfter", "t", "2030-01-01 00:00:00");
    for (value, is_before, is_after) in [
        ("2020-01-01 00:00:00", true, false),
        ("2030-01-01 00:00:01", false, true),
        ("2030-01-01 00:00:00", false, false),
        ("2030-02-30 00:00:00", false, false),
        ("2020-01-01", false, false),
        ("soon", false, false),
        ("", false, false),
    ] {
        let request = Request::get("/a").header("t", value);
        assert_eq!(holds(&before, &request), is_before, "{value} before");
        assert_eq!(holds(&after, &request), is_after, "{value} after");
    }
}

#[test]
fn a_local_time_that_the_clock_skips_or_repeats_is_an_instant_all_the_same() {
    let mut compiler = Compiler::new(TimeZone::get("Europe/Berlin").unwrap());
    for (local, instant) in [
        ("2026-03-29 02:30:00", "2026-03-29T01:30:00Z"),
        ("2026-10-25 02:30:00", "2026-10-25T00:30:00Z"),
    ] {
        let condition = condition("uri", "TimeBefore", "/", local);
        let compiled = compiler.compile(0, &[condition]);
        assert_eq!(compiled.faults, []);
        let at = |text: &str| Request::get("/").with(|r| r.now = text.parse().unwrap());
        assert!(!compiled.conditions.matches(&at(instant)), "{local}");
        let earlier = instant.replace(":30:00", ":29:59");
        assert!(compiled.conditions.matches(&at(&earlier)), "{local}");
    }
}

#[test]
fn what_cannot_be_used_never_matches_and_is_reported() {
    use ConditionField::{Operator, ParamName, ParamType, ParamValue};
    let rows = [
        (("query", ">", "a", "1"), Operator),
        (("query", "<", "a", "1"), Operator),
        (("query", "", "a", "1"), Operator),
        (("uri", "Match", "/", "/a"), Operator),
        (("path", "=", "a", "1"), ParamType),
        (("form-data", "=", "a", "1"), ParamType),
        (("nonsense", "=", "a", "1"), ParamType),
        (("nonsense", "isBlank", "a", "1"), ParamType),
        (("", "=", "a", "1"), ParamType),
        (("uri", "regex", "/", "["), ParamValue),
        (("uri", "regex", "/", "/(?=a).*"), ParamValue),
        (("uri", "pathPattern", "/", "/a/**/c"), ParamValue),
        (("uri", "match", "/", "/a/{x:[}"), ParamValue),
        (("uri", "=", "/", "null"), ParamValue),
        (("header", "contains", "a", ""), ParamValue),
        (("header", "startsWith", "a", "  "), ParamValue),
        (("header", "exclude", "a", "null"), ParamValue),
        (("uri", "TimeBefore", "/", "tomorrow"), ParamValue),
        (("uri", "TimeBefore", "/", "2026-02-30 00:00:00"), ParamValue),
        (("uri", "TimeAfter", "/", "null"), ParamValue),
        (("header", "=", "a b", "1"), ParamName),
        (("header", "=", "null", "1"), ParamName),
        (("query", "=", "", "1"), ParamName),
        (("cookie", "=", "", "1"), ParamName),
        (("post", "=", "startDateTime", "1"), ParamName),
        (("post", "=", "nope", "1"), ParamName),
    ];
    let request = Request::get("/a?a=1").header("a", "1").header("cookie", "a=1");
    for ((param_type, operator, name, value), field) in rows {
        let condition = condition(param_type, operator, name, value);
        let compiled = compile(std::slice::from_ref(&condition));
        assert!(!compiled.conditions.matches(&request), "{condition:?}");
        let [fault] = compiled.faults.as_slice() else {
            panic!("{condition:?} has {:?}", compiled.faults)
        };
        assert_eq!((fault.field, fault.index), (field, 0), "{condition:?}");
        assert!(!fault.expected.is_empty());
        assert_eq!(compiled.conditions.faults().collect::<Vec<_>>(), [fault]);
        // Neither does its opposite apply: under OR the others decide.
        let good = super::condition("uri", "=", "/", "/a");
        let either = compiler().compile(1, &[condition, good]);
        assert!(either.conditions.matches(&request));
    }
}

#[test]
fn joins_and_weights() {
    let yes = condition("uri", "=", "/", "/a");
    let no = condition("uri", "=", "/", "/b");
    let rows: [(i32, &[&crate::model::Condition], bool, u32); 10] = [
        (0, &[], true, 0),
        (1, &[], false, 0),
        (0, &[&yes], true, 1),
        (0, &[&yes, &no], false, 2),
        (0, &[&yes, &yes, &yes], true, 3),
        (1, &[&no, &yes], true, 0),
        (1, &[&no, &no], false, 0),
        (1, &[&yes, &yes, &yes], true, 0),
        // Any other code joins by AND and still counts as nothing.
        (7, &[&yes, &no], false, 0),
        (7, &[&yes, &yes], true, 0),
    ];
    for (mode, list, matches, weight) in rows {
        let list: Vec<_> = list.iter().map(|&condition| condition.clone()).collect();
        let compiled = compiler().compile(mode, &list).conditions;
        assert_eq!(compiled.matches(&Request::get("/a")), matches, "{mode} {list:?}");
        assert_eq!(compiled.weight(), weight, "{mode} {list:?}");
        assert_eq!(compiled.len(), list.len());
    }
}

#[test]
fn an_unusable_condition_counts_for_the_weight() {
    let list = [condition("uri", "=", "/", "/a"), condition("uri", ">", "/", "/a")];
    assert_eq!(compile(&list).conditions.weight(), 2);
}
