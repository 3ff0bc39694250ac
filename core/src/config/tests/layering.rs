//! Which source counts, and by which names.

use std::time::Duration;

use super::{Machine, Secret};

#[test]
fn defaults_come_from_the_table() {
    let small = Machine::new("{}").ok();
    assert_eq!(small.port, 80);
    assert_eq!(small.name, "none");
    assert_eq!(small.timeout, Duration::from_secs(3));
    assert_eq!(small.limit, 2 * 1024 * 1024);
    assert_eq!(small.paths, ["/a", "/b"]);
    assert_eq!((small.token, small.database, small.init_script), (None, None, None));
    assert_eq!((small.plugins.len(), small.list.len()), (0, 0));
}

#[test]
fn the_strongest_source_counts() {
    let file = "shenyu: {name: file}";
    let machine = || Machine::new(file).file("application-p.yml", "shenyu.name: profile");
    assert_eq!(machine().ok().name, "file");
    let profile = || machine().variable("SPRING_PROFILES_ACTIVE", "p");
    assert_eq!(profile().ok().name, "profile");
    let variable = || profile().variable("SHENYU_NAME", "variable");
    assert_eq!(variable().ok().name, "variable");
    let json =
        || variable().variable("SPRING_APPLICATION_JSON", "{\"shenyu\":{\"name\":\"json\"}}");
    assert_eq!(json().ok().name, "json");
    assert_eq!(json().argument("--shenyu.name=argument").ok().name, "argument");
}

#[test]
fn names_are_relaxed_everywhere() {
    for text in [
        "shenyu: {http: {workerCount: 3}}",
        "shenyu: {http: {worker-count: 3}}",
        "shenyu: {http: {WORKERCOUNT: 3}}",
        "shenyu: {http: {worker_count: 3}}",
        "shenyu.http.workerCount: 3",
        "shenyu: {http.workerCount: 3}",
        "shenyu.http: {workerCount: 3}",
        "shenyu: {\"[http]\": {workerCount: 3}}",
    ] {
        assert_eq!(Machine::new(text).ok().workers, 3, "{text}");
    }
    for name in [
        "SHENYU_HTTP_WORKERCOUNT",
        "SHENYU_HTTP_WORKER_COUNT",
        "shenyu_http_workerCount",
        "shenyu.http.workerCount",
        "shenyu.http.worker-count",
    ] {
        assert_eq!(Machine::new("{}").variable(name, "3").ok().workers, 3, "{name}");
    }
    for argument in ["--shenyu.http.workerCount=3", "--shenyu.http.worker-count=3"] {
        assert_eq!(Machine::new("{}").argument(argument).ok().workers, 3, "{argument}");
    }
    let script = Machine::new("{}").variable("SHENYU_INIT_SCRIPT", "s").ok().init_script;
    assert_eq!(script.as_deref(), Some("s"));
    let database = Machine::new("{}").variable("DATABASE_URL", "postgres://h/n").ok().database;
    assert_eq!(database.as_ref().map(Secret::expose), Some("postgres://h/n"));
}

#[test]
fn the_written_key_wins_over_its_other_spelling_in_one_source_only() {
    assert_eq!(Machine::new("shenyu: {oldName: old}").ok().name, "old");
    assert_eq!(Machine::new("shenyu: {oldName: old, name: new}").ok().name, "new");
    let machine = Machine::new("shenyu: {name: new}").variable("SHENYU_OLDNAME", "old");
    assert_eq!(machine.ok().name, "old");
}

#[test]
fn nothing_written_means_the_default() {
    for text in ["shenyu: {name: }", "shenyu: {name: ~}", "shenyu: {name: ''}", "shenyu:", ""] {
        assert_eq!(Machine::new(text).ok().name, "none", "{text}");
    }
    // It still hides what a weaker source says.
    let machine = Machine::new("shenyu: {name: file}").variable("SHENYU_NAME", "");
    assert_eq!(machine.ok().name, "none");
}

#[test]
fn lists_come_whole_from_one_source() {
    for text in [
        "shenyu: {paths: [/x, /y]}",
        "shenyu: {paths: '/x,/y'}",
        "shenyu: {paths: ' /x ; /y; '}",
        "shenyu.paths[0]: /x\nshenyu.paths[1]: /y",
        "shenyu:\n  paths:\n    - /x\n    - /y\n",
    ] {
        assert_eq!(Machine::new(text).ok().paths, ["/x", "/y"], "{text}");
    }
    let file = "shenyu: {paths: [/x, /y, /z]}";
    let one = Machine::new(file).variable("SHENYU_PATHS_0", "/v");
    assert_eq!(one.ok().paths, ["/v"]);
    let two =
        Machine::new(file).variable("SHENYU_PATHS_0_", "/v").variable("SHENYU_PATHS_1_", "/w");
    assert_eq!(two.ok().paths, ["/v", "/w"]);
    assert_eq!(Machine::new(file).variable("SHENYU_PATHS", "/v,/w").ok().paths, ["/v", "/w"]);
    assert_eq!(Machine::new(file).argument("--shenyu.paths[0]=/v").ok().paths, ["/v"]);
    // An element keeps its commas; an empty list is a list.
    assert_eq!(Machine::new("shenyu: {paths: ['/x,/y']}").ok().paths, ["/x,/y"]);
    assert_eq!(Machine::new("shenyu: {paths: []}").ok().paths, [""; 0]);
}

#[test]
fn lists_of_objects() {
    let file = "shenyu:\n  list:\n    - {name: a, size: 1KB}\n    - name: b\n";
    let want = vec![(Some("a".to_owned()), Some(1024)), (Some("b".to_owned()), None)];
    assert_eq!(Machine::new(file).ok().list, want);
    let machine = Machine::new("{}")
        .variable("SHENYU_LIST_0_NAME", "a")
        .variable("SHENYU_LIST_0_SIZE", "1024")
        .variable("SHENYU_LIST_1_NAME", "b");
    assert_eq!(machine.ok().list, want);
}

#[test]
fn names_in_keys_are_gathered_from_all_sources() {
    let machine =
        Machine::new("shenyu: {plugins: {rate-limiter: {enabled: no}, ai.prompt: {enabled: on}}}")
            .variable("SHENYU_PLUGINS_JWT_ENABLED", "false")
            .variable("SHENYU_PLUGINS_MCP_SERVER_ENABLED", "true")
            .argument("--shenyu.plugins.rateLimiter.enabled=true");
    let want = [("ai.prompt", true), ("jwt", false), ("mcp.server", true), ("rateLimiter", true)];
    assert_eq!(machine.ok().plugins, want.map(|(name, on)| (name.to_owned(), on)));
}

#[test]
fn values_of_every_kind() {
    for (text, want) in [("yes", true), ("on", true), ("True", true), ("no", false), ("OFF", false)]
    {
        let small = Machine::new(&format!("shenyu.http.accessLog: {text}")).ok();
        assert_eq!(small.access_log, want, "{text}");
    }
    for (text, bytes) in [("5", 5), ("1KB", 1024), ("2 MB", 2 << 20), ("1GB", 1 << 30), ("7B", 7)] {
        assert_eq!(Machine::new(&format!("shenyu.http.limit: {text}")).ok().limit, bytes, "{text}");
    }
    for (text, millis) in [
        ("250", 250),
        ("250ms", 250),
        ("10s", 10_000),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("PT1M30S", 90_000),
        ("P1DT1S", 86_401_000),
    ] {
        let small = Machine::new(&format!("shenyu.http.timeout: {text}")).ok();
        assert_eq!(small.timeout, Duration::from_millis(millis), "{text}");
    }
    for text in ["16", "0x10", "1_6"] {
        assert_eq!(Machine::new(&format!("shenyu.http.workerCount: {text}")).ok().workers, 16);
    }
    assert_eq!(Machine::new("shenyu.mode: per-core").ok().mode, "perCore");
}

#[test]
fn placeholders_look_at_variables_and_keys() {
    let machine = Machine::new(
        "server: {port: '${PORT:8080}'}\nmy: {host: h}\nshenyu: {name: '${my.host}:${server.port}', paths: '${PATHS:/p,/q}'}",
    );
    let small = machine.ok();
    assert_eq!((small.port, small.name.as_str()), (8080, "h:8080"));
    assert_eq!(small.paths, ["/p", "/q"]);
    assert_eq!(machine.variable("PORT", "81").ok().name, "h:81");
}

#[test]
fn secrets_come_from_files_too() {
    let machine = Machine::new("shenyu: {tokenFile: /run/token}").file("/run/token", "s3cret\n");
    assert_eq!(machine.ok().token.as_ref().map(Secret::expose), Some("s3cret"));
    let machine = Machine::new("{}").variable("SHENYU_TOKENFILE", "t").file("t", "x");
    assert_eq!(machine.ok().token.as_ref().map(Secret::expose), Some("x"));
    let machine = Machine::new("shenyu: {token: a, token-file: /none}");
    assert_eq!(machine.ok().token.as_ref().map(Secret::expose), Some("a"));
}
