//! The recorded talk between a made-up stock admin and a gateway, replayed against ours: what it
//! sends, and which upstream serves after each frame.

use std::collections::BTreeMap;

use longmen_benchmark::origin::Origin;
use serde_json::Value;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::fake_admin::{FakeAdmin, Manners, Seen};
use crate::support::{Answer, gateway, get, recording, stop, upstream};

const RUNNING_MODE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket","longmen":{"version":7}}"#;

/// Checks whose outcome differs here, and why.
const DIFFERS: &[(&str, Ours, &str)] = &[
    ("plugin only: -107", Ours::Code(-107), "the stock gateway had not taken the frame in yet"),
    (
        "list with U2 only merges (U1 stays)",
        Ours::Upstream("U2"),
        "a list of local rows is the whole truth and replaces",
    ),
    ("U1 status 1: only U2", Ours::Code(-119), "the list holds U1 alone, and U1 is down"),
    (
        "U1 status 0 again after one down event",
        Ours::Both,
        "the same upstreams in turn; where the turn stands, is each gateway's own",
    ),
    (
        "U1 status 0 after two down events in a row",
        Ours::Both,
        "an upstream that comes back is used again",
    ),
    ("selector without logged", Ours::Upstream("U1"), "absent members take their default"),
    ("rule without loged", Ours::Upstream("U1"), "absent members take their default"),
    (
        "after reconnect nothing was sent: old data still served",
        Ours::Code(-106),
        "an answered but empty sequence, agreed on twice, empties",
    ),
];

#[derive(Debug, Clone, Copy)]
enum Ours {
    Upstream(&'static str),
    /// U1 and U2 in turn.
    Both,
    Code(i64),
}

struct Replay {
    admin: FakeAdmin,
    gateway: longmen_bootstrap::RunningGateway,
    upstreams: Vec<Origin>,
    checked: usize,
    used: BTreeMap<&'static str, usize>,
    /// Who served the last check, and which check that was.
    last: Option<(String, String)>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_feed_is_taken_in_as_recorded() {
    let lines = recording("websocket/gateway-side.jsonl");
    let upstreams: Vec<Origin> = ["U1", "U2"].map(upstream).into();
    let manners = Manners { running_mode: vec![RUNNING_MODE.into()], ..Manners::default() };
    let admin = FakeAdmin::start(manners).await;
    let yaml =
        format!("  sync:\n    websocket:\n      urls: {}\n      pingInterval: 200\n", admin.url());
    let gateway = gateway(&yaml).await;
    let mut replay =
        Replay { admin, gateway, upstreams, checked: 0, used: BTreeMap::new(), last: None };
    replay.opening().await;
    let mut asked = false;
    for line in &lines {
        replay.line(line, &mut asked).await;
    }
    assert!(replay.checked > 60, "only {} checks in the recording", replay.checked);
    for (name, ..) in DIFFERS {
        assert!(replay.used.contains_key(name), "no check is called {name:?} any more");
    }
    println!(
        "gateway-side: {} checks, {} differ on purpose",
        replay.checked,
        replay.used.values().sum::<usize>()
    );
    stop(replay.gateway).await;
}

impl Replay {
    /// The handshake and the words, in their order.
    async fn opening(&mut self) {
        let Seen::Open(headers) = self.admin.next().await.seen else { panic!("no handshake") };
        assert_eq!(headers["namespaceid"], longmen_core::model::DEFAULT_NAMESPACE);
        assert_eq!(headers["clientport"], self.gateway.address.port().to_string().as_str());
        assert_eq!(headers["origin"], "ws://localhost:9195");
        for word in ["RUNNING_MODE", "MYSELF", "RUNNING_MODE"] {
            assert_eq!(self.admin.next_word().await, word);
        }
    }

    async fn line(&mut self, line: &Value, asked: &mut bool) {
        if line.get("check").is_some() {
            return self.check(line).await;
        }
        let text = line["text"].as_str().unwrap_or_default();
        match line["dir"].as_str() {
            Some(">") => *asked = text == "RUNNING_MODE",
            Some("closed") => self.reconnect().await,
            // The answer to a word was given when the word came.
            Some("<") if *asked => *asked = false,
            Some("<") => self.send(line, text).await,
            _ => {}
        }
    }

    async fn send(&mut self, line: &Value, text: &str) {
        let note = line["note"].as_str().unwrap_or_default();
        if note.contains("PING") {
            return self.admin.fence().await;
        }
        let text = self.with_addresses(text);
        if text == r"b'\x00\x01'" {
            self.admin.send(Message::Binary(Bytes::from_static(b"\x00\x01")));
        } else if text.starts_with("(3 MB frame") {
            let handle = "x".repeat(3_000_000);
            self.admin.text(format!(
                r#"{{"groupType":"SELECTOR","eventType":"UPDATE","data":[{{"id":"s-big","pluginName":"divide","name":"big","matchMode":0,"type":1,"sort":1,"enabled":false,"logged":false,"continued":true,"handle":"{handle}","conditionList":[]}}]}}"#
            ));
        } else if note.contains("three fragments") {
            self.admin.fragments(&text);
        } else {
            self.admin.text(text);
        }
        self.admin.fence().await;
    }

    fn with_addresses(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (at, origin) in self.upstreams.iter().enumerate() {
            text = text.replace(&format!("127.0.0.1:{}", 9481 + at), &origin.addr().to_string());
        }
        text
    }

    async fn check(&mut self, line: &Value) {
        self.checked += 1;
        let name = line["check"].as_str().unwrap();
        let got = get(&self.gateway, line["path"].as_str().unwrap()).await;
        let expected = match DIFFERS.iter().find(|(differs, ..)| *differs == name) {
            Some((differs, ours, _)) => {
                *self.used.entry(differs).or_default() += 1;
                *ours
            }
            None => recorded(line),
        };
        let fits = match expected {
            Ours::Upstream(upstream) => {
                got.status == 200 && got.upstream.as_deref() == Some(upstream)
            }
            Ours::Both => {
                let before = self.last.take().filter(|(check, _)| check == name);
                got.status == 200
                    && got.upstream.as_deref() != before.as_ref().map(|b| b.1.as_str())
            }
            Ours::Code(code) => envelope_code(&got) == Some(code) && got.status == 200,
        };
        self.last = got.upstream.clone().map(|upstream| (name.to_owned(), upstream));
        assert!(fits, "check {name:?}: expected {expected:?}, got {got:?}");
    }

    /// The admin goes away and comes back with nothing: the gateway asks twice before it believes.
    async fn reconnect(&mut self) {
        self.admin.close(1001);
        loop {
            if matches!(self.admin.next().await.seen, Seen::Open(_)) {
                break;
            }
        }
        for word in ["RUNNING_MODE", "MYSELF", "RUNNING_MODE", "MYSELF", "RUNNING_MODE"] {
            assert_eq!(self.admin.next_word().await, word);
        }
        self.admin.fence().await;
    }
}

fn recorded(line: &Value) -> Ours {
    let body = line["body"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    match body["code"].as_i64() {
        Some(code) => Ours::Code(code),
        None => Ours::Upstream(match body["name"].as_str() {
            Some("U1") => "U1",
            Some("U2") => "U2",
            other => panic!("an upstream the replay does not have: {other:?}"),
        }),
    }
}

fn envelope_code(answer: &Answer) -> Option<i64> {
    serde_json::from_str::<Value>(&answer.body).ok()?["code"].as_i64()
}
