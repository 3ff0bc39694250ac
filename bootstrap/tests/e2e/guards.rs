//! Guards that this gateway cannot run: what they were meant for is refused, the rest passes.

use longmen_bootstrap::RunningGateway;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{gateway, get, stop, until, upstream};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

fn plugin(name: &str, role: &str) -> String {
    format!(
        r#"{{"id":"{name}","name":"{name}","config":"","role":"{role}","enabled":true,"sort":20,"pluginJar":""}}"#
    )
}

fn selector(plugin: &str, pattern: &str) -> String {
    format!(
        r#"{{"id":"s-{plugin}","pluginName":"{plugin}","name":"{plugin}","matchMode":0,"type":1,"sort":1,"enabled":true,"logged":false,"continued":true,"handle":"","conditionList":[{{"paramType":"uri","operator":"match","paramName":"/","paramValue":"{pattern}"}}]}}"#
    )
}

fn rule(plugin: &str, pattern: &str) -> String {
    format!(
        r#"{{"id":"r-{plugin}","name":"{plugin}","pluginName":"{plugin}","selectorId":"s-{plugin}","matchMode":0,"sort":1,"enabled":true,"loged":false,"handle":"{{}}","conditionDataList":[{{"paramType":"uri","operator":"match","paramName":"/","paramValue":"{pattern}"}}]}}"#
    )
}

/// A gateway on a stock-shaped feed: divide for everything, and jwt, waf and an unknown plugin, each
/// for a path of its own.
async fn fed(
    acme_role: &str,
    keys: &str,
) -> (FakeAdmin, RunningGateway, longmen_benchmark::origin::Origin) {
    let origin = upstream("U1");
    let frame = |group: &str, data: &[String]| {
        format!(r#"{{"groupType":"{group}","eventType":"MYSELF","data":[{}]}}"#, data.join(","))
    };
    let sequence = vec![
        frame(
            "PLUGIN",
            &[
                plugin("divide", "Proxy"),
                plugin("jwt", "Authentication"),
                plugin("waf", "Authentication"),
                plugin("acme", acme_role),
            ],
        ),
        frame(
            "SELECTOR",
            &[
                selector("divide", "/**"),
                selector("jwt", "/jwt/**"),
                selector("waf", "/waf/**"),
                selector("acme", "/acme/**"),
            ],
        ),
        frame("RULE", &[rule("divide", "/**"), rule("jwt", "/jwt/**"), rule("acme", "/acme/**")]),
        format!(
            r#"{{"groupType":"DISCOVER_UPSTREAM","eventType":"UPDATE","data":[{{"selectorId":"s-divide","pluginName":"divide","selectorName":"divide","upstreamDataList":[{{"id":"u1","protocol":"http://","url":"{}","status":0,"weight":50,"props":"{{}}"}}]}}]}}"#,
            origin.addr()
        ),
    ];
    let manners = Manners { running_mode: vec![STANDALONE.into()], sequence, ..Manners::default() };
    let admin = FakeAdmin::start(manners).await;
    let yaml = format!("{keys}  sync:\n    websocket:\n      urls: {}\n", admin.url());
    let gateway = gateway(&yaml).await;
    until(&gateway, |ready, _| ready).await;
    (admin, gateway, origin)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_meant_for_a_missing_guard_are_refused_and_say_why() {
    for mode in ["shenyu", "standard"] {
        let (_admin, gateway, _origin) =
            fed("Authentication", &format!("  compat: {mode}\n")).await;
        for guard in ["jwt", "waf", "acme"] {
            let answer = get(&gateway, &format!("/{guard}/x")).await;
            assert_eq!((answer.status, answer.upstream), (503, None), "{guard} under {mode}");
            assert!(answer.body.contains("plugin_unavailable"), "{}", answer.body);
            assert!(answer.body.contains(guard), "{}", answer.body);
        }
        // The same in other spellings of the path.
        for path in ["/%6awt/x", "//jwt/x", "/jwt;a=b/x"] {
            assert_eq!(get(&gateway, path).await.status, 503, "{path}");
        }
        assert_eq!(get(&gateway, "/free/x").await.upstream.as_deref(), Some("U1"));
        stop(gateway).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_plugin_of_another_role_is_left_out() {
    let (_admin, gateway, _origin) = fed("Logging", "").await;
    assert_eq!(get(&gateway, "/acme/x").await.upstream.as_deref(), Some("U1"));
    assert_eq!(get(&gateway, "/jwt/x").await.status, 503);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_it_may_ignore_missing_guards() {
    let keys = "  plugins:\n    onMissing: ignore\n";
    let (_admin, gateway, _origin) = fed("Authentication", keys).await;
    for path in ["/jwt/x", "/waf/x", "/acme/x"] {
        assert_eq!(get(&gateway, path).await.upstream.as_deref(), Some("U1"), "{path}");
    }
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_the_file_switches_off_is_not_missed() {
    let keys = "  plugins:\n    jwt:\n      enabled: false\n    acme.enabled: false\n";
    let (_admin, gateway, _origin) = fed("Authentication", keys).await;
    for path in ["/jwt/x", "/acme/x"] {
        assert_eq!(get(&gateway, path).await.upstream.as_deref(), Some("U1"), "{path}");
    }
    assert_eq!(get(&gateway, "/waf/x").await.status, 503, "still on, still missing");
    stop(gateway).await;
}
