//! Guards and proxies that must see one path (C-23), and upstreams that come back (C-11).

use serde_json::{Value, json};

use super::{Field, ok, only_target, upstream};
use crate::standard::{objects, routed, routed_by};
use crate::support::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_no_spelling_of_a_guarded_path_gets_by() {
    let origin = upstream(|_| ok("ok")).await;
    let mut manners = routed(&origin.address().to_string());
    // A guard that cannot run refuses whatever it would have judged.
    let guard = objects("waf", "/internal/", "", "{}").into_iter().take(3);
    manners.sequence.extend(guard.map(|frame| frame.replace("Proxy", "Authentication")));
    let field = Field::start(manners, "").await;
    for (target, expected) in [
        ("/internal/x", 503),
        ("/%69nternal/x", 503),
        ("/internal%2Fx", 503),
        ("/internal%2fx?q=1", 503),
        ("//internal/x", 503),
        ("/internal;a=b/x", 503),
        ("http://h/internal/x", 503),
        ("/public/../internal/x", 400),
        ("/public/%2e%2e/internal/x", 400),
        ("/public/.%2E/internal/x", 400),
        ("/internal%00/x", 400),
        ("/public\\..\\internal/x", 400),
    ] {
        let answer = field.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(answer.status(), expected, "{target}");
        assert!(origin.take().is_empty(), "{target} reached the upstream");
    }
    for target in ["/INTERNAL/x", "/public/%69nternal/x", "/internally/x"] {
        let answer = field.send(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!((answer.status(), only_target(&origin).as_str()), (200, target));
    }
    field.stop().await;
}

/// The list as an admin sends it whose own checks found this: address, and whether it is there.
fn list(members: &[(String, bool)]) -> String {
    let frames = routed_by("", "{}").sequence;
    let mut frame: Value = serde_json::from_str(frames.last().unwrap()).unwrap();
    frame["data"][0]["upstreamDataList"] = members
        .iter()
        .map(|(url, up)| {
            json!({"protocol": "http://", "url": url, "status": i32::from(!*up), "weight": 50, "props": "{\"warmup\":\"0\"}"})
        })
        .collect();
    frame.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_an_upstream_that_the_admin_and_probes_gave_up_gets_its_share_again() {
    let (one, two) = (crate::support::upstream("U1"), crate::support::upstream("U2"));
    let (first, second) = (one.addr().to_string(), two.addr().to_string());
    let keys = "  upstreamCheck:\n    enabled: true\n    interval: 100\n    timeout: 2000\n";
    let both = format!("{first},{second}");
    let handle = r#"{"loadBalance":"roundRobin","retry":0}"#;
    let mut field = Field::start(routed_by(&both, handle), keys).await;
    let mut origins = (Some(one), Some(two));
    for round in 0..2 {
        // First one of them goes, then both; each time the admin says so too.
        origins.0.take().expect("it runs").stop().await;
        if round == 1 {
            origins.1.take().expect("it runs").stop().await;
        }
        field.admin.text(list(&[(first.clone(), false), (second.clone(), round == 0)]));
        field.admin.fence().await;
        let seen = crate::support::get(&field.gateway, "/x").await;
        let (status, name) = if round == 0 { (200, Some("U2")) } else { (503, None) };
        assert_eq!((seen.status, seen.upstream.as_deref()), (status, name), "{}", seen.body);
        let start = |name: &str, address: &str| {
            longmen_benchmark::origin::Origin::builder().name(name).bind(address).start().unwrap()
        };
        origins.0 = Some(start("U1", &first));
        if round == 1 {
            origins.1 = Some(start("U2", &second));
        }
        field.admin.text(list(&[(first.clone(), true), (second.clone(), true)]));
        field.admin.fence().await;
        let balanced = async {
            loop {
                let mut names = Vec::new();
                for _ in 0..20 {
                    names.extend(crate::support::get(&field.gateway, "/x").await.upstream);
                }
                if names.iter().filter(|name| *name == "U1").count() == 10 && names.len() == 20 {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LIMIT, balanced).await.expect("it never gets its share again");
    }
    field.stop().await;
}
