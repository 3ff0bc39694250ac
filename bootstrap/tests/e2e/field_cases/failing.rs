//! Upstreams that fail, and handles that are odd (C-28, C-36).

use longmen_benchmark::raw::{Answer, Then};
use serde_json::Value;
use tokio::net::TcpSocket;

use super::{Field, bytes_then, ok, only_target, upstream};
use crate::standard::{objects, routed, routed_by};

/// The envelope of an answer: JSON with code and message, and nothing of the inside.
fn envelope(answer: &Answer, inside: &str) -> Value {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(!text.contains(inside) && !text.contains("127.0.0.1"), "{text}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{text:?}"));
    assert!(body["code"].is_i64() && body["message"].is_string(), "{body}");
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c36_failing_upstreams_have_their_status_and_an_envelope() {
    let refusing = TcpSocket::new_v4().unwrap();
    refusing.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nobody = refusing.local_addr().unwrap().to_string();
    let silent = upstream(|_| bytes_then("", Then::Hold)).await;
    let closing = upstream(|_| bytes_then("", Then::Close)).await;
    let half = upstream(|_| bytes_then("HTTP/1.1 200 OK\r\nX-Half: ", Then::Close)).await;
    let garbled = upstream(|_| bytes_then("HELLO WORLD\r\n\r\n", Then::Close)).await;
    let handle = r#"{"loadBalance":"roundRobin","retry":0,"timeout":300}"#;
    for (what, address, expected) in [
        ("refused", nobody, &[502, 503][..]),
        ("silent", silent.address().to_string(), &[504]),
        ("closed after the request", closing.address().to_string(), &[502]),
        ("half a head", half.address().to_string(), &[502]),
        ("no HTTP", garbled.address().to_string(), &[502]),
        ("no upstream at all", String::new(), &[503]),
    ] {
        let field = Field::start(routed_by(&address, handle), "").await;
        let port = address.rsplit(':').next().unwrap_or_default().to_owned();
        let answer = field.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert!(expected.contains(&answer.status()), "{what}: {}", answer.status());
        envelope(&answer, if port.is_empty() { "127.0.0.1" } else { &port });
        field.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c36_fewer_bytes_than_announced_end_the_clients_connection() {
    let short =
        upstream(|_| bytes_then("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Then::Close))
            .await;
    let field = Field::start(routed(&short.address().to_string()), "").await;
    let answer = field.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(
        (answer.status(), answer.cut),
        (200, true),
        "the client must see that bytes are missing"
    );
    let chunked = upstream(|_| {
        bytes_then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Then::Close)
    })
    .await;
    let other = Field::start(routed(&chunked.address().to_string()), "").await;
    let answer = other.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!((answer.status(), answer.cut), (200, true), "no last chunk is made up");
    field.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c28_odd_handles_are_defaulted_or_skipped_and_good_ones_go_on() {
    let origin = upstream(|_| ok("")).await;
    let address = origin.address().to_string();
    let text = |text: &str| Value::String(text.to_owned());
    // Handles as stores contain them: whether the rule works, by its defaults or as it says.
    let handles = [
        (Value::Null, true),
        (text(""), true),
        (text("{}"), true),
        (text("null"), true),
        (text(r#"{"loadBalance":"random","retry":"0","timeout":"3000","foo":{"a":[1]}}"#), true),
        (text("[]"), false),
        (text("not json"), false),
        (text(r#"{"timeout":"soon"}"#), false),
        (text(r#"{"retry":{"times":3}}"#), false),
    ];
    for (handle, works) in handles {
        let mut manners = routed(&address);
        // The rule with the odd handle applies to /odd, a good one of another selector to the rest.
        let mut odd = objects("divide", "/odd", &address, "");
        for frame in &mut odd {
            let mut object: Value = serde_json::from_str(frame).unwrap();
            let data = &mut object["data"][0];
            for (member, value) in [("id", "s-odd"), ("selectorId", "s-odd")] {
                let is_rule = data.get("conditionDataList").is_some();
                if data.get(member).is_some() && !(member == "id" && is_rule) {
                    data[member] = text(value);
                }
            }
            match object["groupType"].as_str() {
                Some("RULE") => {
                    object["data"][0]["id"] = text("r-odd");
                    object["data"][0]["handle"] = handle.clone();
                }
                Some("SELECTOR") => object["data"][0]["sort"] = Value::from(0),
                _ => {}
            }
            *frame = object.to_string();
        }
        // One frame for each group, as an admin sends them.
        manners.sequence = merged(&manners.sequence, &odd[1..]);
        let field = Field::start(manners, "").await;
        let status = field.send("GET /good HTTP/1.1\r\nHost: h\r\n\r\n").await.status();
        assert_eq!(status, 200, "a good rule beside {handle}");
        assert_eq!(only_target(&origin), "/good");
        let answer = field.send("GET /odd HTTP/1.1\r\nHost: h\r\n\r\n").await;
        if works {
            assert_eq!(answer.status(), 200, "{handle}");
            assert_eq!(only_target(&origin), "/odd");
        } else {
            assert_eq!(answer.status(), 404, "{handle}");
            assert_eq!(envelope(&answer, "odd")["code"], -102);
        }
        field.stop().await;
    }
}

fn merged(frames: &[String], more: &[String]) -> Vec<String> {
    let mut out: Vec<Value> =
        frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect();
    for frame in more {
        let frame: Value = serde_json::from_str(frame).unwrap();
        match out.iter_mut().find(|known| known["groupType"] == frame["groupType"]) {
            Some(known) if frame["groupType"] != "DISCOVER_UPSTREAM" => {
                known["data"].as_array_mut().unwrap().push(frame["data"][0].clone());
            }
            _ => out.push(frame),
        }
    }
    out.iter().map(Value::to_string).collect()
}
