//! Proxied websockets: the upstream switches first, then bytes flow both ways.

use futures_util::{SinkExt, StreamExt};
use longmen_bootstrap::RunningGateway;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{LIMIT, gateway, get, stop, until, upstream};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

fn objects(plugin: &str, upstream: &str) -> Vec<String> {
    let condition =
        r#"[{"paramType":"uri","operator":"startsWith","paramName":"/","paramValue":"/"}]"#;
    [
        format!(r#"{{"groupType":"PLUGIN","eventType":"MYSELF","data":[{{"id":"{plugin}","name":"{plugin}","role":"Proxy","enabled":true,"sort":200,"pluginJar":""}}]}}"#),
        format!(r#"{{"groupType":"SELECTOR","eventType":"MYSELF","data":[{{"id":"s-{plugin}","pluginName":"{plugin}","name":"s","matchMode":0,"type":1,"sort":1,"enabled":true,"logged":false,"continued":true,"handle":"","conditionList":{condition}}}]}}"#),
        format!(r#"{{"groupType":"RULE","eventType":"MYSELF","data":[{{"id":"r-{plugin}","name":"r","pluginName":"{plugin}","selectorId":"s-{plugin}","matchMode":0,"sort":1,"enabled":true,"loged":false,"handle":"{{}}","conditionDataList":{condition}}}]}}"#),
        format!(r#"{{"groupType":"DISCOVER_UPSTREAM","eventType":"UPDATE","data":[{{"selectorId":"s-{plugin}","pluginName":"{plugin}","selectorName":"s","upstreamDataList":[{{"id":"u","protocol":"ws://","url":"{upstream}","status":0,"weight":50,"props":"{{}}"}}]}}]}}"#),
    ]
    .into()
}

async fn routed_to(upstream: &str) -> (FakeAdmin, RunningGateway) {
    let mut sequence = objects("websocket", upstream);
    sequence.extend(objects("divide", upstream));
    let manners = Manners { running_mode: vec![STANDALONE.into()], sequence, ..Manners::default() };
    let admin = FakeAdmin::start(manners).await;
    let gateway = gateway(&format!(
        "  compat: standard\n  sync:\n    websocket:\n      urls: {}\n",
        admin.url()
    ))
    .await;
    until(&gateway, |ready, _| ready).await;
    (admin, gateway)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_flow_both_ways_and_a_close_is_passed_on() {
    let origin = upstream("U1");
    let (_admin, gateway) = routed_to(&origin.addr().to_string()).await;
    let url = format!("ws://{}/ws?x=%2B", gateway.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    for message in [Message::text("hello"), Message::binary(vec![7; 1 << 20])] {
        socket.send(message.clone()).await.unwrap();
        let echoed = tokio::time::timeout(LIMIT, socket.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(echoed, message);
    }
    socket.close(None).await.unwrap();
    let rest = tokio::time::timeout(LIMIT, socket.next()).await.unwrap();
    assert!(matches!(rest, None | Some(Ok(Message::Close(_)))), "{rest:?}");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_not_told_101_before_the_upstream_switched() {
    let (_admin, gateway) = routed_to("127.0.0.1:1").await;
    let refused = tokio_tungstenite::connect_async(format!("ws://{}/ws", gateway.address)).await;
    let Err(Error::Http(answer)) = refused else { panic!("expected an HTTP answer") };
    assert_eq!(answer.status(), 502);
    stop(gateway).await;
    // An upstream that answers as if it were a plain request.
    let origin = upstream("U1");
    let (_admin, gateway) = routed_to(&origin.addr().to_string()).await;
    let refused = tokio_tungstenite::connect_async(format!("ws://{}/hello", gateway.address)).await;
    let Err(Error::Http(answer)) = refused else { panic!("expected an HTTP answer") };
    assert_eq!(answer.status(), 200);
    assert_eq!(get(&gateway, "/hello").await.upstream.as_deref(), Some("U1"));
    stop(gateway).await;
}
