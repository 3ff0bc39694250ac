//! Where values come from.

use http::HeaderValue;

use super::{Request, compile, condition, holds};
use crate::condition::{
    ContextField, Inputs, cookie_value, header_text, headers_cookie, query_value,
};

#[test]
fn query_values() {
    for (query, name, value) in [
        ("q", "q", None),
        ("q=", "q", Some("")),
        ("q=%20", "q", Some(" ")),
        ("q=1", "q", Some("1")),
        ("", "q", None),
        ("a=1&q=2&q=3", "q", Some("2")),
        ("q&q=3", "q", None),
        ("q=a+b%2Bc", "q", Some("a b+c")),
        ("q=%E4%B8%AD", "q", Some("\u{4e2d}")),
        ("q=%C3%28", "q", Some("\u{fffd}(")),
        ("q=%zz%2", "q", Some("%zz%2")),
        ("%71=1", "q", Some("1")),
        ("a+b=1", "a b", Some("1")),
        ("q==b", "q", Some("=b")),
        ("q=b=c", "q", Some("b=c")),
        ("=q", "q", None),
        ("==q=1", "q", Some("1")),
        ("&&q=1", "q", Some("1")),
        ("Q=1", "q", None),
        ("q=1;b=2", "b", None),
        ("=", "", None),
    ] {
        assert_eq!(query_value(query, name).as_deref(), value, "{query:?} {name}");
    }
}

#[test]
fn cookie_values() {
    for (header, name, value) in [
        ("v=2", "v", Some("2")),
        ("V=2", "v", None),
        ("a=1; v=2", "v", Some("2")),
        ("a=1;v=2; v=3", "v", Some("2")),
        ("a=1; v", "v", None),
        ("v=", "v", Some("")),
        ("v=a=b", "v", Some("a=b")),
        ("v=\"x y\"", "v", Some("x y")),
        ("v=\"x", "v", None),
        ("v=\"", "v", None),
        ("av=1", "v", None),
        ("", "v", None),
        ("=1", "", None),
    ] {
        assert_eq!(cookie_value(header, name), value, "{header:?} {name}");
    }
    let request = Request::get("/").header("cookie", "a=1").header("cookie", "v=2; a=3");
    assert_eq!(headers_cookie(&request.headers, "v").as_deref(), Some("2"));
    assert_eq!(headers_cookie(&request.headers, "a").as_deref(), Some("1"));
}

#[test]
fn header_texts() {
    let latin = HeaderValue::from_bytes(b"caf\xe9").unwrap();
    assert_eq!(header_text(&latin), "caf\u{e9}");
    let utf8 = HeaderValue::from_bytes("caf\u{e9}".as_bytes()).unwrap();
    assert_eq!(header_text(&utf8), "caf\u{e9}");
}

#[test]
fn a_blank_parameter_is_blank_and_a_missing_one_too() {
    let blank = condition("query", "isBlank", "q", "");
    for (target, expected) in
        [("/a", true), ("/a?q", true), ("/a?q=", true), ("/a?q=%20", true), ("/a?q=1", false)]
    {
        assert_eq!(holds(&blank, &Request::get(target)), expected, "{target}");
    }
}

#[test]
fn the_first_line_of_a_header_counts_and_its_name_has_no_case() {
    let prod = condition("header", "=", "x-ENV", "prod");
    for (lines, expected) in [
        (&["prod"][..], true),
        (&["PROD"], false),
        (&["prod", "test"], true),
        (&["test", "prod"], false),
        (&[], false),
    ] {
        let request = lines.iter().fold(Request::get("/a"), |r, line| r.header("x-env", line));
        assert_eq!(holds(&prod, &request), expected, "{lines:?}");
    }
}

#[test]
fn cookies_are_compared_with_the_trimmed_value() {
    let two = condition("cookie", "=", "v", "  2 ");
    for (cookie, expected) in [("v=2", true), ("V=2", false), ("a=1; v=2", true)] {
        let request = Request::get("/a").header("cookie", cookie);
        assert_eq!(holds(&two, &request), expected, "{cookie}");
    }
}

#[test]
fn methods_addresses_and_context() {
    let request = Request::get("/a?a=2");
    for ((param_type, operator, name, value), expected) in [
        (("req_method", "=", "req_method", "GET"), true),
        (("req_method", "=", "req_method", "get"), false),
        (("req_method", "=", "", "POST"), false),
        (("ip", "=", "ip", "127.0.0.1"), true),
        (("ip", "startsWith", "ip", "127."), true),
        (("ip", "startsWith", "ip", "192.0.2."), false),
        (("host", "=", "host", "127.0.0.1"), true),
        (("post", "=", "method", "/a"), true),
        (("post", "=", "path", "/a"), true),
        (("post", "=", "httpMethod", "GET"), true),
        (("post", "=", "rpcType", "http"), true),
        (("post", "=", "realUrl", "/a"), false),
        (("post", "isBlank", "realUrl", ""), true),
        (("post", "isBlank", "nope", ""), true),
    ] {
        let condition = condition(param_type, operator, name, value);
        assert_eq!(holds(&condition, &request), expected, "{condition:?}");
    }
    for field in ContextField::ALL {
        assert_eq!(ContextField::from_name(field.name()), Some(field));
    }
}

#[test]
fn host_names_have_no_case() {
    for (operator, value) in [
        ("=", "gw.TEST"),
        ("startsWith", "Gw."),
        ("endsWith", ".Test"),
        ("contains", "W.T"),
        ("regex", r"GW\.[a-z]+"),
    ] {
        for domain in ["gw.test", "GW.test"] {
            let request = Request::get("/a").with(|r| domain.clone_into(&mut r.domain));
            let condition = condition("domain", operator, "x", value);
            assert!(holds(&condition, &request), "{operator} {value} {domain}");
        }
    }
    let other = condition("domain", "exclude", "x", "GW");
    assert!(!holds(&other, &Request::get("/a")));
}

#[test]
fn what_is_read_is_known() {
    let rows = [
        (vec![], Inputs::default(), true),
        (vec![("uri", "=", "/", "/a")], Inputs::PATH, true),
        (vec![("uri", "regex", "/", "/a")], Inputs::PATH, true),
        (
            vec![("uri", "=", "/", "/a"), ("header", "=", "a", "1")],
            Inputs::PATH.and(Inputs::HEADER),
            false,
        ),
        (vec![("uri", "TimeBefore", "/", "2030-01-01 00:00:00")], Inputs::CLOCK, false),
        (vec![("query", "=", "a", "1")], Inputs::QUERY, false),
        (vec![("cookie", "isBlank", "a", "")], Inputs::COOKIE, false),
        (vec![("req_method", "=", "", "GET")], Inputs::METHOD, false),
        (vec![("post", "=", "httpMethod", "GET")], Inputs::METHOD, false),
        (vec![("post", "=", "module", "a")], Inputs::CONTEXT, false),
        (vec![("domain", "=", "", "a")], Inputs::DOMAIN, false),
        (vec![("ip", "=", "", "a"), ("host", "=", "", "a")], Inputs::CLIENT, false),
        (vec![("header", ">", "a", "1")], Inputs::default(), true),
    ];
    for (list, inputs, path_only) in rows {
        let list: Vec<_> =
            list.into_iter().map(|(t, o, name, value)| condition(t, o, name, value)).collect();
        let compiled = compile(&list).conditions;
        assert_eq!(compiled.inputs(), inputs, "{list:?}");
        assert_eq!(compiled.path_only(), path_only, "{list:?}");
    }
}
