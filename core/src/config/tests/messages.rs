//! What is said of what is wrong or unknown.

use super::{Machine, Notice};

#[test]
fn a_problem_names_place_key_value_and_expectation() {
    for (yaml, want) in [
        (
            "server:\n  port: 70000\n",
            "application.yml:2: server.port: expected a port from 0 to 65535, found \"70000\"",
        ),
        (
            "server:\n  port: http\n",
            "application.yml:2: server.port: expected a port from 0 to 65535, found \"http\"",
        ),
        (
            "shenyu:\n  http:\n    accessLog: maybe\n",
            "application.yml:3: shenyu.http.accessLog: expected true or false, found \"maybe\"",
        ),
        (
            "shenyu:\n  http:\n    worker-count: 65\n",
            "application.yml:3: shenyu.http.worker-count: expected a whole number from 0 to 64, found \"65\"",
        ),
        (
            "shenyu.http.workerCount: 1.5\n",
            "application.yml:1: shenyu.http.workerCount: expected a whole number from 0 to 64, found \"1.5\"",
        ),
        (
            "shenyu.mode: single\n",
            "application.yml:1: shenyu.mode: expected one of perCore, shared, found \"single\"",
        ),
        (
            "shenyu.http.timeout: -5\n",
            "application.yml:1: shenyu.http.timeout: expected a number of milliseconds, or a time such as 500ms or 10s, found \"-5\"",
        ),
        (
            "shenyu.http.timeout: 5 parsecs\n",
            "application.yml:1: shenyu.http.timeout: expected a number of milliseconds, or a time such as 500ms or 10s, found \"5 parsecs\"",
        ),
        (
            "shenyu.http.limit: 2XB\n",
            "application.yml:1: shenyu.http.limit: expected a number of bytes, or a size such as 512KB or 2MB, found \"2XB\"",
        ),
        (
            "shenyu.http.limit: 99999999999TB\n",
            "application.yml:1: shenyu.http.limit: expected a number of bytes, or a size such as 512KB or 2MB, found \"99999999999TB\"",
        ),
        (
            "shenyu:\n  name: [a, b]\n",
            "application.yml:2: shenyu.name: expected a text, found a list",
        ),
        ("shenyu:\n  name: []\n", "application.yml:2: shenyu.name: expected a text, found a list"),
        (
            "shenyu:\n  name:\n    first: x\n",
            "application.yml:3: shenyu.name: expected a text, found a mapping",
        ),
        ("shenyu:\n  http: 5\n", "application.yml:2: shenyu.http: expected a mapping, found \"5\""),
        ("server: 9195\n", "application.yml:1: server: expected a mapping, found \"9195\""),
        (
            "shenyu:\n  plugins:\n    jwt:\n      enabled: 7\n",
            "application.yml:4: shenyu.plugins.jwt.enabled: expected true or false, found \"7\"",
        ),
        (
            "shenyu:\n  name: ${WHO}\n",
            "application.yml:2: shenyu.name: the placeholder ${WHO} has no value: no variable, argument or key of that name, and no default",
        ),
        (
            "shenyu:\n  name: ${WHO\n",
            "application.yml:2: shenyu.name: the placeholder \"${WHO\" has no closing brace",
        ),
        (
            "shenyu: {name: '${shenyu.name}'}\n",
            "application.yml:1: shenyu.name: the placeholder ${shenyu.name} refers to itself",
        ),
        (
            "server.ssl.certificate: c.pem\n",
            "application.yml:1: server.ssl.certificate: there is no TLS here",
        ),
        (
            "a: 1\nb: [x\nc: 2\n",
            "application.yml:3: not valid YAML: did not find expected ',' or ']'",
        ),
        (
            "shenyu:\n  list:\n  - size: big\n",
            "application.yml:3: shenyu.list[0].size: expected a number of bytes, or a size such as 512KB or 2MB, found \"big\"",
        ),
    ] {
        let problems = Machine::new(yaml).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(want), "{yaml}\n  want {want}\n  have {}", problems[0]);
    }
}

#[test]
fn variables_and_arguments_are_named() {
    let machine = Machine::new("")
        .variable("SHENYU_HTTP_WORKERCOUNT", "many")
        .variable("PORT", "x")
        .argument("--server.port=${PORT}")
        .argument("--shenyu.mode=none");
    assert_eq!(
        machine.problems(),
        [
            "argument --server.port: server.port: expected a port from 0 to 65535, found \"x\"",
            "environment variable SHENYU_HTTP_WORKERCOUNT: shenyu.http.workerCount: expected a whole number from 0 to 64, found \"many\"",
            "argument --shenyu.mode: shenyu.mode: expected one of perCore, shared, found \"none\"",
        ]
    );
    for argument in ["import", "--server.port", "-x", "--=3"] {
        let want = format!("argument {argument}: expected --key=value");
        assert_eq!(Machine::new("").argument(argument).problems(), [want]);
    }
}

#[test]
fn all_problems_come_together() {
    let yaml = "server.port: a\n---\nshenyu:\n  mode: b\n  paths: {x: y}\n";
    let error = Machine::new(yaml).load().expect_err("three problems");
    assert_eq!(
        error.to_string(),
        "the configuration has 3 problems\n  application.yml:1: server.port: expected a port from 0 to 65535, found \"a\"\n  application.yml:5: shenyu.paths: expected a list, each item a text, found a mapping\n  application.yml:4: shenyu.mode: expected one of perCore, shared, found \"b\""
    );
}

#[test]
fn a_gap_in_a_list_is_a_problem() {
    let machine = Machine::new("shenyu.paths[0]: /a\nshenyu.paths[2]: /c\n");
    assert_eq!(
        machine.problems(),
        ["application.yml:2: shenyu.paths[2]: expected the indexes of a list without a gap"]
    );
}

#[test]
fn secrets_are_never_shown() {
    let machine = Machine::new("shenyu: {token: 'a${b'}\n");
    assert_eq!(
        machine.problems(),
        ["application.yml:1: shenyu.token: has a placeholder that cannot be resolved"]
    );
    let machine = Machine::new("shenyu: {tokenFile: /none}\n");
    assert_eq!(machine.problems(), ["application.yml:1: shenyu.tokenFile: there is no file /none"]);
    let shown = format!("{:?}", Machine::new("shenyu: {token: hidden}").ok());
    assert!(shown.contains("***") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn unknown_keys_name_the_nearest() {
    for (yaml, want) in [
        (
            "a: 1\nshenyu:\n  http:\n    workerCuont: 3\n",
            "application.yml:4: shenyu.http.workerCuont is not a known key; the nearest known key is shenyu.http.workerCount",
        ),
        (
            "shenyu: {plugins: {jwt: {enable: true}}}\n",
            "application.yml:1: shenyu.plugins.jwt.enable is not a known key; the nearest known key is shenyu.plugins.*.enabled",
        ),
        (
            "shenyu: {nmae: x}\n",
            "application.yml:1: shenyu.nmae is not a known key; the nearest known key is shenyu.name",
        ),
    ] {
        assert!(
            Machine::new(yaml).notices().contains(&Notice::warn(want)),
            "{:?}",
            Machine::new(yaml).notices()
        );
    }
    let machine = Machine::new("").variable("SHENYU_HTTP_ACESSLOG", "1").argument("--sever.port=1");
    let notices = machine.notices();
    assert!(notices.contains(&Notice::warn("environment variable SHENYU_HTTP_ACESSLOG: shenyu.http.acesslog is not a known key; the nearest known key is shenyu.http.accessLog")), "{notices:?}");
    assert!(
        notices
            .iter()
            .any(|n| n.text.starts_with("argument --sever.port: sever.port is not a known key")),
        "{notices:?}"
    );
}

#[test]
fn quiet_about_what_is_nobodys_fault() {
    let machine = Machine::new(
        "spring: {unknown: {x: 1}}\nother: {a: b}\nshenyu: {http: , laterSwitch: false, jvm: }\n",
    )
    .variable("SHENYU_ADMIN_SERVICE_HOST", "10.0.0.1")
    .variable("SHENYU_ADMIN_SERVICE_PORT_HTTP", "9095")
    .variable("SHENYU_ADMIN_PORT", "tcp://10.0.0.1:9095")
    .variable("SHENYU_ADMIN_PORT_9095_TCP_ADDR", "10.0.0.1")
    .variable("PATH", "/bin")
    .variable("HOME", "/root");
    assert_eq!(machine.notices(), [Notice::info("configuration read from application.yml")]);
}

#[test]
fn keys_without_meaning_are_listed_once() {
    let machine = Machine::new(
        "spring: {main: {a: 1, b: 2}}\nshenyu: {jvm: {x: {y: 1}}, later: x, laterSwitch: on, oldName: o}\n",
    );
    assert_eq!(
        machine.notices()[1..],
        [
            Notice::info("shenyu.oldName is another spelling of shenyu.name"),
            Notice::warn("this version does not act on: shenyu.later, shenyu.laterSwitch"),
            Notice::info(
                "these keys are accepted and have no meaning here: shenyu.jvm.*, spring.main.*"
            ),
        ]
    );
}
