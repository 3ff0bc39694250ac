//! The gateway's table and sections on files as people have them.

mod in_force;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use longmen_core::config::{
    ConfigError, Kind, Loaded, MemoryEnvironment, Notice, NoticeLevel, Status, check_page, load,
};

use super::{
    ClientStrategy, Compat, ForwardedMode, GatewayConfig, GetBody, Inputs, OnMissing, PoolType,
    RpcTypeHeader, SCHEMA, SHIPPED, UpstreamsMode, WorkerModel,
};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/config/", $name))
    };
}

fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded<GatewayConfig>, ConfigError> {
    let mut environment = MemoryEnvironment::new().with_file("application.yml", text);
    environment = environment.with_file("application-common.yml", fixture!("profiles-common.yml"));
    for (name, value) in variables {
        environment = environment.with_variable(name, value);
    }
    GatewayConfig::load(&[], &environment, Path::new("application.yml"))
}

fn ok(text: &str) -> GatewayConfig {
    loaded(text, &[]).map_or_else(|e| panic!("{e}"), |loaded| loaded.config)
}

fn notices(text: &str) -> Vec<Notice> {
    loaded(text, &[]).map_or_else(|e| panic!("{e}"), |loaded| loaded.notices)
}

fn warnings(text: &str) -> Vec<String> {
    let warns = notices(text).into_iter().filter(|n| n.level == NoticeLevel::Warn);
    warns.map(|n| n.text).collect()
}

fn problems(text: &str) -> Vec<String> {
    match loaded(text, &[]) {
        Ok(loaded) => panic!("loaded {:?}", loaded.config),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

/// Every key that the table calls used is read, and every default is of its kind: reading them
/// would panic otherwise.
#[test]
fn the_table_and_the_sections_agree() {
    let environment = MemoryEnvironment::new()
        .with_file("application.yml", "shenyu.netty.http.sni.certificates[0].domain: x");
    let mut asked = BTreeSet::new();
    let inputs = Inputs {
        arguments: &[],
        environment: &environment,
        default_path: Path::new("application.yml"),
        shipped: SHIPPED,
        roots: &SCHEMA.roots(),
    };
    let _ = load(&SCHEMA, &inputs, |reader| {
        let config = GatewayConfig::read(reader);
        asked.extend(reader.asked());
        config
    });
    let found_first = |path: &str| path == "config" || path.starts_with("spring.");
    for spec in SCHEMA.keys().filter(|spec| spec.status == Status::Used) {
        assert!(asked.contains(spec.path) || found_first(spec.path), "{} is not read", spec.path);
        assert!(!spec.meaning.is_empty(), "{} has no meaning", spec.path);
    }
    let mut paths = BTreeSet::new();
    for path in SCHEMA.keys().flat_map(|spec| spec.aliases.iter().chain([&spec.path])) {
        assert!(paths.insert(*path), "{path} is declared twice");
    }
}

/// Every word that the docs offer is taken.
#[test]
fn every_word_of_a_choice_loads() {
    for spec in SCHEMA.keys().filter(|spec| spec.status == Status::Used) {
        if let Kind::Choice(words) = spec.kind {
            for word in words {
                ok(&format!("{}: {word}", spec.path));
            }
            let bad = problems(&format!("{}: nonsense", spec.path));
            let want = format!("expected one of {}, found \"nonsense\"", words.join(", "));
            assert_eq!(bad, [format!("application.yml:1: {}: {want}", spec.path)]);
        }
    }
}

#[test]
fn defaults() {
    let config = GatewayConfig::default();
    assert_eq!(config.server.socket().to_string(), "0.0.0.0:9195");
    assert_eq!(config.management.socket().to_string(), "127.0.0.1:8090");
    assert_eq!(config.compat.mode, Compat::Shenyu);
    assert_eq!(config.compat.forwarded_mode, ForwardedMode::Off);
    assert_eq!(config.compat.get_body, GetBody::Drop);
    assert!(!config.compat.request_id_upstream && config.http_client.keep_alive);
    assert_eq!(config.plugins.on_missing, OnMissing::Refuse);
    assert_eq!(config.sync.websocket.urls, [""; 0]);
    assert_eq!(config.sync.websocket.allow_origin, "ws://localhost:9195");
    assert_eq!(config.sync.websocket.master_check_interval, Duration::from_mins(1));
    assert_eq!(config.filters.health_paths, ["/actuator", "/health_check"]);
    assert!(config.match_cache.selector.enabled && config.match_cache.rule.enabled);
    assert!(config.match_index.enabled);
    assert!(!config.local.enabled && config.local.key_hash.is_none());
    assert_eq!(config.netty.worker_count, 0);
    assert!(config.netty.workers() >= 1);
}

#[test]
fn the_shipped_file() {
    let config = ok(SHIPPED);
    assert_eq!(warnings(SHIPPED), [""; 0]);
    assert_eq!(config.compat.mode, Compat::Standard);
    assert_eq!(config.compat.error_status, Compat::Standard);
    assert_eq!(config.compat.get_body, GetBody::Forward);
    assert_eq!(config.compat.rpc_type_header, RpcTypeHeader::Ignore);
    assert_eq!(config.compat.forwarded_mode, ForwardedMode::Append);
    assert!(config.compat.request_id_upstream && !config.compat.retry_non_idempotent);
    assert_eq!(config.sync.websocket.urls, ["ws://localhost:9095/websocket"]);
    let environment = MemoryEnvironment::new();
    let without_file = GatewayConfig::load(&[], &environment, Path::new("application.yml"));
    assert_eq!(without_file.map(|loaded| loaded.config), Ok(config));
}

#[test]
fn a_row_of_compat_overrides_the_switch() {
    let config = ok(
        "shenyu: {compat: standard, getBody: drop, errorStatus: shenyu, forwarded.mode: off, requestId.upstream: no}",
    );
    assert_eq!(config.compat.get_body, GetBody::Drop);
    assert_eq!(config.compat.error_status, Compat::Shenyu);
    assert_eq!(config.compat.forwarded_mode, ForwardedMode::Off);
    assert!(!config.compat.request_id_upstream);
    assert_eq!(config.compat.rpc_type_header, RpcTypeHeader::Ignore);
}

#[test]
fn a_stock_file_of_2_6_1() {
    let text = fixture!("stock-2.6.1.yml");
    let config = ok(text);
    assert_eq!(config.server.socket().to_string(), "127.0.0.1:9295");
    assert!(config.server.compression.enabled);
    assert_eq!(config.server.compression.min_response_bytes, 1 << 20);
    assert_eq!(config.server.body_buffer_bytes, 3 << 20);
    assert_eq!(config.netty.worker_count, 6);
    assert!(config.netty.access_log && !config.netty.socket.no_delay);
    assert_eq!(config.netty.listener.backlog, 256);
    assert_eq!(config.netty.listener.receive_buffer_bytes, Some(87_380));
    assert_eq!(config.netty.socket.linger_seconds, Some(5));
    assert_eq!(config.netty.socket.tos, Some(16));
    assert_eq!(config.netty.socket.write_buffer_bytes, 131_072);
    assert_eq!(config.netty.sni, None);
    assert_eq!(config.match_cache.selector.maximum_size, 5000);
    assert!(!config.match_cache.selector.enabled && config.match_cache.rule.enabled);
    let urls = ["ws://10.0.0.1:9095/websocket", "ws://10.0.0.2:9095/websocket"];
    assert_eq!(config.sync.websocket.urls, urls);
    assert_eq!(config.filters.exclude_paths, ["/favicon.ico", "/robots.txt"]);
    assert_eq!(config.filters.file_max_bytes, Some(20 << 20));
    let cross = config.filters.cross.as_ref().expect("switched on");
    assert!(cross.any_origin && cross.credentials && config.filters.collapse_slashes);
    assert_eq!(
        (cross.max_age, &cross.methods[..]),
        (Duration::from_hours(1), &["*".to_owned()][..])
    );
    assert_eq!(config.upstream_check.print_interval, Some(Duration::from_secs(30)));
    assert_eq!(config.management.port, 9091);
    assert!(config.local.enabled && config.local.is_shipped_key);
    assert_eq!(config.websocket.max_frame_bytes, 12 << 20);
    assert_eq!(
        config.logging.filter(),
        "warn,longmen_admin=debug,longmen_bootstrap=debug,longmen_core=debug,longmen_db=debug,longmen_plugins=debug"
    );
    assert_eq!(
        warnings(text),
        [
            "this version does not act on: server.compression.enabled, shenyu.duplicateResponseHeader.headers, shenyu.duplicateResponseHeader.strategy",
            "shenyu.local.sha512Key is the hash of 123456 that ShenYu ships: it counts for loopback peers only",
            "shenyu.cross allows any origin together with credentials: every web page can use a user's session",
        ]
    );
}

#[test]
fn a_stock_file_of_2_7_1() {
    let text = fixture!("stock-2.7.1.yml");
    let config = ok(text);
    assert_eq!(config.server.port, 9196);
    assert_eq!(config.namespace, "11111111-2222-3333-4444-555555555555");
    assert_eq!(config.compat.mode, Compat::Shenyu);
    assert_eq!(config.netty.max_initial_line_bytes, 5000);
    assert_eq!(config.netty.max_header_bytes, 16_384);
    assert_eq!(config.netty.socket.linger_seconds, None);
    assert_eq!(config.sync.websocket.urls, ["ws://localhost:9095/websocket"]);
    assert!(!config.local.enabled && !config.management.metrics_enabled);
    let inert: Vec<Notice> = notices(text)
        .into_iter()
        .filter(|n| n.text.starts_with("these keys are accepted and have no meaning here: "))
        .collect();
    assert_eq!(inert.len(), 1, "listed once");
    assert_eq!(inert[0].level, NoticeLevel::Info);
    for key in ["shenyu.heartbeat.*", "shenyu.ribbon.*", "shenyu.scheduler.*", "eureka.*"] {
        assert!(inert[0].text.contains(key), "{key}: {}", inert[0].text);
    }
    let moved = loaded(
        text,
        &[("GATEWAY_PORT", "9300"), ("ADMIN_URLS", "ws://a/websocket,wss://b/websocket")],
    );
    let moved = moved.map_or_else(|e| panic!("{e}"), |loaded| loaded.config);
    assert_eq!(moved.server.port, 9300);
    assert_eq!(moved.sync.websocket.urls, ["ws://a/websocket", "wss://b/websocket"]);
}

#[test]
fn the_published_benchmark() {
    for (text, strategy) in [
        (fixture!("benchmark-netty.yml"), ClientStrategy::Hyper),
        (fixture!("benchmark-webClient.yml"), ClientStrategy::Reqwest),
    ] {
        let config = ok(text);
        assert_eq!(config.http_client.strategy, strategy);
        assert!(!config.http_client.keep_alive);
        assert_eq!(config.http_client.connect_timeout, Duration::from_secs(40));
        assert_eq!(config.http_client.response_timeout, Duration::from_millis(2500));
        assert_eq!(config.http_client.idle_timeout, Some(Duration::from_secs(3)));
        assert_eq!(config.http_client.max_in_memory_bytes, 1 << 20);
        assert_eq!(config.http_client.pool.pool_type, PoolType::Elastic);
        assert_eq!(config.http_client.pool.max_idle_time, Duration::from_secs(3));
        assert!(config.match_cache.selector.enabled && config.match_cache.rule.enabled);
        assert_eq!(config.match_cache.selector.maximum_size, 11_000);
        assert_eq!(config.match_cache.rule.maximum_size, 65_000);
        assert_eq!(config.match_cache.rule.initial_capacity, 1000);
        assert_eq!(
            warnings(text),
            [
                "shenyu.httpclient.keepAlive is false: a connection to the upstream is opened for each request"
            ]
        );
    }
}

#[test]
fn the_match_index_is_on_unless_switched_off_with_a_warning() {
    assert!(ok("shenyu.matchIndex.enabled: true").match_index.enabled);
    for off in ["false", "off"] {
        let text = format!("shenyu.matchIndex.enabled: {off}");
        assert!(!ok(&text).match_index.enabled);
        let warned = "shenyu.matchIndex.enabled is false: every request is compared with one rule after the other";
        assert_eq!(warnings(&text), [warned]);
    }
    assert_eq!(
        problems("shenyu:\n  matchIndex:\n    enabled: linear"),
        ["application.yml:3: shenyu.matchIndex.enabled: expected true or false, found \"linear\""]
    );
}

#[test]
fn profiles_documents_dotted_keys() {
    let text = fixture!("profiles.yml");
    let config = ok(text);
    assert_eq!(config.namespace, "blue");
    assert_eq!(config.time_zone.to_string(), "Asia/Shanghai");
    assert_eq!(config.filters.exclude_paths, ["/one", "/two"]);
    assert!(!config.plugins.is_enabled("rateLimiter") && !config.plugins.is_enabled("aiPrompt"));
    assert!(config.plugins.is_enabled("divide"));
    assert_eq!(config.compat.trusted_proxies.len(), 2);
    let inside: IpAddr = Ipv4Addr::new(10, 1, 2, 3).into();
    assert!(config.compat.trusted_proxies[0].contains(inside));
    let green = loaded(text, &[("PROFILE", "green")]).map(|loaded| loaded.config.namespace);
    assert_eq!(green.as_deref(), Ok("green"));
    let variable = loaded(text, &[("SHENYU_NAMESPACE", "v")]).map(|loaded| loaded.config.namespace);
    assert_eq!(variable.as_deref(), Ok("v"));
}

#[test]
fn variables_and_arguments_reach_every_kind() {
    let config = loaded(
        "{}",
        &[
            ("SHENYU_SYNC_WEBSOCKET_URLS", "ws://a:9095/websocket,ws://b:9095/websocket"),
            ("SHENYU_NETTY_HTTP_WORKERMODEL", "shared"),
            ("SHENYU_PLUGINS_RATE_LIMITER_ENABLED", "false"),
            ("SHENYU_PLUGINS_CRYPTOR_ENABLED", "false"),
            ("SHENYU_FORWARDED_TRUSTED", "10.0.0.0/8"),
            ("SHENYU_SYNC_UPSTREAMS", "replace"),
            ("SHENYU_SYNC_TOKEN", "hidden"),
            ("LOGGING_LEVEL_ROOT", "debug"),
            ("LOGGING_LEVEL_ORG_APACHE_SHENYU", "trace"),
            ("SERVER_PORT", "0"),
        ],
    );
    let config = config.map_or_else(|e| panic!("{e}"), |loaded| loaded.config);
    assert_eq!(config.sync.websocket.urls.len(), 2);
    assert_eq!(config.netty.worker_model, WorkerModel::Shared);
    for plugin in ["rateLimiter", "cryptorRequest", "cryptorResponse"] {
        assert!(!config.plugins.is_enabled(plugin), "{plugin}");
    }
    assert_eq!(config.sync.upstreams, UpstreamsMode::Replace);
    assert_eq!(config.server.port, 0);
    assert!(config.logging.filter().starts_with("debug,longmen_admin=trace"));
    assert!(!format!("{config:?}").contains("hidden"));
}

#[test]
fn every_mistake_of_a_file_is_named_at_once() {
    let mut have = problems(fixture!("wrong/many.yml"));
    have.sort();
    let mut want = [
        "3: server.port: expected a port from 0 to 65535, found \"99999\"",
        "4: server.address: expected an IP address to listen on, such as 0.0.0.0 or 127.0.0.1, found \"everywhere\"",
        "6: shenyu.namespace: expected a text, found a list",
        "7: shenyu.compat: expected one of shenyu, standard, found \"spring\"",
        "8: shenyu.timeZone: expected a time zone such as Europe/Berlin, GMT+8 or +08:00, found \"Mars/Olympus\"",
        "9: shenyu.getBody: expected one of drop, forward, found \"maybe\"",
        "11: shenyu.forwarded.trusted[1]: expected an IP network such as 10.0.0.0/8, or an IP address, found \"10.0.0/8\"",
        "14: shenyu.sync.websocket.urls[1]: expected a URL that begins with ws:// or wss://, found \"http://localhost:9095\"",
        "15: shenyu.sync.websocket.masterCheckInterval: expected a number of milliseconds, or a time such as 500ms or 10s, at least 1 ms, found \"0\"",
        "16: shenyu.sync.upstreams: expected one of auto, replace, merge, found \"sometimes\"",
        "19: shenyu.netty.http.workerCount: expected a whole number from 0 to 1024, found \"-1\"",
        "20: shenyu.netty.http.accessLog: expected true or false, found \"perhaps\"",
        "21: shenyu.netty.http.httpDecoder: expected a mapping, found \"8192\"",
        "23: shenyu.httpclient.strategy: expected one of hyper, netty, reqwest, webClient, found \"okhttp\"",
        "24: shenyu.httpclient.connectTimeout: expected a number of milliseconds, or a time such as 500ms or 10s, at least 1 ms, found \"45 parsecs\"",
        "25: shenyu.httpclient.maxInMemorySize: expected a number of MB, or a size such as 512KB or 2MB, at least 1 bytes, found \"1 potato\"",
        "27: shenyu.httpclient.pool.type: expected one of ELASTIC, FIXED, DISABLED, found \"RUBBER\"",
        "28: shenyu.httpclient.pool.maxConnections: expected a whole number from 1 to 1000000, found \"0\"",
        "30: shenyu.httpclient.proxy.host: expected shenyu.httpclient.proxy.port beside it",
        "32: shenyu.health.paths[1]: expected a path that begins with /, found \"actuator\"",
        "35: shenyu.cross.allowedOrigin.originRegex: expected a regular expression, found \"(\"",
        "37: shenyu.local.sha512Key: expected a SHA-512 hash of 128 hexadecimal digits, found \"123456\"",
        "40: shenyu.plugins.jwt.enabled: expected true or false, found \"sometimes\"",
        "42: shenyu.limits.maxInFlight: the placeholder ${MAX_IN_FLIGHT} has no value: no variable, argument or key of that name, and no default",
        "45: logging.level.root: expected one of trace, debug, info, warn, error, off, found \"loud\"",
    ]
    .map(|line| format!("application.yml:{line}"));
    want.sort();
    assert_eq!(have, want);
}

#[test]
fn files_that_are_wrong_as_a_whole() {
    for (text, want) in [
        (
            fixture!("wrong/malformed.yml"),
            "application.yml:5: not valid YAML: did not find expected ',' or ']'",
        ),
        (
            fixture!("wrong/tls.yml"),
            "application.yml:5: server.ssl.key-store: HTTPS on the public port is not available in this version; put a TLS terminator in front and remove server.ssl",
        ),
        (
            fixture!("wrong/other-source.yml"),
            "application.yml:4: shenyu.sync.zookeeper.url: is a source of data that this version does not have; expected shenyu.sync.websocket.urls",
        ),
        (
            fixture!("wrong/same-port.yml"),
            "default: shenyu.management.port: expected another port than server.port, found \"8090\"",
        ),
    ] {
        let have = problems(text);
        assert_eq!(have.len(), 1, "{have:?}");
        assert!(have[0].starts_with(want), "want {want}\nhave {}", have[0]);
        assert!(!have[0].contains("secret") && !have[0].contains("hidden"), "{}", have[0]);
    }
}

#[test]
fn unknown_keys_are_warnings() {
    assert_eq!(
        warnings(fixture!("unknown-keys.yml")),
        [
            "application.yml:4: shenyu.netty.http.workercuont is not a known key; the nearest known key is shenyu.netty.http.workerCount",
            "application.yml:6: shenyu.httpclient.keepalives is not a known key; the nearest known key is shenyu.httpclient.keepAlive",
            "application.yml:8: shenyu.pluggins.jwt.enabled is not a known key; the nearest known key is shenyu.plugins.*.enabled",
        ]
    );
}

#[test]
fn the_page_of_the_docs_is_fresh() {
    check_page(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md"), &SCHEMA);
}

#[test]
fn a_snapshot_has_a_file_of_its_own_for_each_port() {
    let path = |text: &str| ok(text).snapshot.path.map(|path| path.display().to_string());
    assert_eq!(path("").as_deref(), Some(".data/gateway-9195.snapshot"));
    assert_eq!(path("server.port: 9300").as_deref(), Some(".data/gateway-9300.snapshot"));
    // Any free port is another one at the next start.
    assert_eq!(path("server.port: 0"), None);
    assert_eq!(path("shenyu.snapshot.enabled: false"), None);
    let named = "server.port: 0\nshenyu.snapshot.path: /var/lib/longmen/gateway.snapshot";
    assert_eq!(path(named).as_deref(), Some("/var/lib/longmen/gateway.snapshot"));
    for (path, expected) in [
        ("/var/lib/longmen/", "a file, not a folder"),
        ("/", "a file, not a folder"),
        ("/tmp/{pid}.snapshot", "a path with no other placeholder than {port}"),
    ] {
        let text = format!("shenyu.snapshot.path: '{path}'");
        let expected = format!("application.yml:1: shenyu.snapshot.path: expected {expected}");
        assert_eq!(problems(&text), [expected]);
        assert_eq!(ok(&format!("{text}\nshenyu.snapshot.enabled: false")).snapshot.path, None);
    }
}
