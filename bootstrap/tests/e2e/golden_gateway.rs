//! The recorded requests through a stock gateway, sent through ours under `compat: shenyu`.
//!
//! Every difference is on purpose, with the place where that is decided, in `purpose.rs`. Anything else
//! fails. What came out is `docs/golden-gateway.md`.

mod compare;
mod page;
mod purpose;
mod record;
mod script;
mod stage;
mod stand_in;
mod websocket;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longmen_benchmark::raw::{Answer, RawClient, Received, Reply, Then};
use serde_json::{Value, json};

use self::compare::{Choice, Connections, Difference, Ours, compare};
use self::purpose::{Case, Verdict};
use self::record::{Config, Exchange, Record};
use self::script::{Script, script};
use self::stage::Stage;
use crate::support::{LIMIT, recording};

/// The client strategies under test.
const STRATEGIES: &[&str] = &["hyper", "reqwest"];

/// How many objects are in force at each exchange of a record whose configuration changes between
/// its exchanges.
const STEPS: &[(&str, &[usize])] = &[("GC-08", &[3, 5]), ("GC-33", &[6, 9]), ("GC-36", &[3, 4])];

/// Records of balancers that choose by chance, or by addresses, which are others here.
const BY_CHANCE: &[&str] = &[
    "GC-38",
    "GC-38-random",
    "GC-38-leastActive",
    "GC-38-p2c",
    "GC-38-shortestResponse",
    "GC-38m",
    "GC-38o",
];

/// What came of one record.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) file: &'static str,
    pub(crate) id: String,
    pub(crate) exchanges: usize,
    pub(crate) checks: usize,
    /// What differs, with the verdict on it.
    pub(crate) differing: Vec<(Difference, &'static Verdict)>,
}

struct Replay {
    file: &'static str,
    strategy: &'static str,
    outcomes: Vec<Outcome>,
    unexplained: Vec<String>,
}

/// Keys below `shenyu:` for what the recordings say of their settings.
fn settings(record: &Record, strategy: &str) -> String {
    let keep_alive = match record.settings.as_str() {
        "default" | "absent" => "",
        other if other.contains("keepAlive=false") => "    keepAlive: false\n",
        other if other.contains("keepAlive=true") => "    keepAlive: true\n",
        other => panic!("settings that are not known here: {other}"),
    };
    let caches = if record.settings.contains("match caches on") {
        "  selectorMatchCache:\n    cache:\n      enabled: true\n  ruleMatchCache:\n    cache:\n      enabled: true\n"
    } else {
        ""
    };
    format!(
        "  compat: shenyu\n  cross:\n    enabled: true\n    allowedAnyOrigin: true\n    allowCredentials: true\n  \
         file:\n    enabled: true\n    maxSize: 10\n{caches}  httpclient:\n    strategy: {strategy}\n{keep_alive}"
    )
}

/// The lines of a file; the cases without a recording are always those of this folder.
fn lines(file: &str) -> Vec<Value> {
    if file != "spec-cases" {
        return recording(&format!("gateway/{file}.jsonl"));
    }
    let text = include_str!("../golden/gateway/spec-cases.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replays one file by one strategy.
async fn replay(file: &'static str, strategy: &'static str) -> Replay {
    let records = record::records(&lines(file));
    assert!(!records.is_empty(), "{file}: nothing recorded");
    let mut replay = Replay { file, strategy, outcomes: Vec::new(), unexplained: Vec::new() };
    let mut by_settings: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in &records {
        by_settings.entry(settings(record, strategy)).or_default().push(record);
    }
    for (yaml, records) in by_settings {
        let websocket = websocket::Upstream::start().await;
        let mut stage = Stage::start(&yaml, Some(websocket.address), |_, _| Reply {
            bytes: Vec::new(),
            then: Then::Close,
        })
        .await;
        for record in records {
            replay.record(&mut stage, &websocket, record).await;
            stage.clear().await;
        }
        stage.stop().await;
    }
    replay
}

impl Replay {
    async fn record(
        &mut self,
        stage: &mut Stage,
        websocket: &websocket::Upstream,
        record: &Record,
    ) {
        let mut outcome = Outcome {
            file: self.file,
            id: record.id.clone(),
            exchanges: record.exchanges.len(),
            checks: 0,
            differing: Vec::new(),
        };
        let mut client = None;
        let mut connections = self.file.starts_with("keepalive").then(Connections::default);
        let free = BY_CHANCE.contains(&record.id.as_str());
        let choice = if free { Choice::Free } else { Choice::Compared };
        let mut chosen = Vec::new();
        let mut applied = 0;
        for (number, exchange) in record.exchanges.iter().enumerate() {
            applied += configure(stage, record, number, applied).await;
            let (exchange, ours, found) = if exchange.websocket.is_some() {
                let (ours, found) = websocket::exchange(stage, websocket, exchange).await;
                (localised(stage, exchange), ours, found)
            } else {
                let kept =
                    record.exchanges.get(number + 1).is_some_and(Exchange::on_the_same_connection);
                let exchange = localised(stage, exchange);
                let ours = one(stage, &record.id, &exchange, &mut client, kept).await;
                chosen.extend(ours.upstream.iter().map(|(name, _)| name.clone()));
                let found = compare(&exchange, &ours, connections.as_mut(), choice);
                (exchange, ours, found)
            };
            outcome.checks += found.checks;
            for difference in found.differences {
                let case =
                    Case { file: self.file, record: &record.id, exchange: &exchange, ours: &ours };
                match purpose::verdict(&case, &difference) {
                    Some(verdict) => outcome.differing.push((difference, verdict)),
                    None => self.unexplained.push(format!(
                        "{} by {}, {} exchange {} ({}): {}\n    recorded {:.300}\n    ours     {:.300}",
                        self.file,
                        self.strategy,
                        record.id,
                        number + 1,
                        exchange.note,
                        difference.check,
                        difference.recorded,
                        difference.ours,
                    )),
                }
            }
        }
        chosen.dedup();
        let hashed = record.id == "GC-38";
        assert!(!hashed || chosen.len() == 1, "one client, several upstreams by hash: {chosen:?}");
        self.outcomes.push(outcome);
    }
}

/// Puts in force what an exchange needs; returns how many objects were applied.
async fn configure(stage: &mut Stage, record: &Record, number: usize, applied: usize) -> usize {
    match &record.config {
        Config::Objects(objects) => {
            let steps = STEPS.iter().find(|(id, _)| *id == record.id);
            let wanted = steps
                .and_then(|(_, steps)| steps.get(number).copied())
                .unwrap_or(objects.len())
                .min(objects.len());
            if wanted > applied {
                stage.apply(&objects[applied..wanted]).await;
            }
            wanted.saturating_sub(applied)
        }
        Config::PatternOfNote { operator } => {
            stage.clear().await;
            stage.apply(&pattern_objects(operator, pattern(&record.exchanges[number]))).await;
            0
        }
    }
}

/// The pattern that a note begins with: what stands before the path, which was sent.
fn pattern(exchange: &Exchange) -> &str {
    let note = exchange.note.split(" expect").next().unwrap_or_default();
    note.rsplit_once(' ').map_or(note, |(pattern, _)| pattern)
}

fn pattern_objects(operator: &str, pattern: &str) -> [(String, Value); 3] {
    let condition = |operator: &str, value: &str| json!([{"paramType": "uri", "operator": operator, "paramName": "/", "paramValue": value}]);
    let upstreams = json!([{"upstreamHost": "localhost", "protocol": "http://", "upstreamUrl": "127.0.0.1:9481",
        "weight": 50, "status": true, "timestamp": 0, "warmup": 0}]);
    let rule = json!({"loadBalance": "roundRobin", "retryStrategy": "current", "retry": 0, "timeout": 3000});
    [
        ("PLUGIN", json!({"id": "5", "name": "divide", "role": "Proxy", "enabled": true, "sort": 200})),
        (
            "SELECTOR",
            json!({"id": "s1", "name": "s1", "pluginName": "divide", "enabled": true, "sort": 10, "matchMode": 0,
                "type": 1, "logged": false, "continued": true, "handle": upstreams.to_string(),
                "conditionList": condition(operator, pattern), "matchRestful": false}),
        ),
        (
            "RULE",
            json!({"id": "r1", "name": "r1", "pluginName": "divide", "selectorId": "s1", "enabled": true, "sort": 10,
                "matchMode": 0, "loged": false, "handle": rule.to_string(),
                "conditionDataList": condition("startsWith", "/"), "matchRestful": false}),
        ),
    ]
    .map(|(group, object)| (group.to_owned(), object))
}

/// The exchange with the addresses of this stage.
fn localised(stage: &Stage, recorded: &Exchange) -> Exchange {
    let got = &recorded.got;
    Exchange {
        note: recorded.note.clone(),
        sent: stage.here(&recorded.sent),
        upstream: recorded
            .upstream
            .iter()
            .map(|seen| record::Seen {
                upstream: seen.upstream.clone(),
                connection: seen.connection,
                head: stage.here(&seen.head),
                body: seen.body.clone(),
            })
            .collect(),
        got: record::Got {
            status: got.status,
            head: stage.here(&got.head),
            body: stage.here(&got.body),
            interim: got.interim.clone(),
            closed: got.closed,
            raw: got.raw.as_deref().map(|raw| stage.here(raw)),
        },
        websocket: recorded.websocket.clone(),
    }
}

/// Sends one exchange and collects what came of it. `kept`: the next one uses the connection too.
async fn one(
    stage: &Stage,
    id: &str,
    exchange: &Exchange,
    client: &mut Option<RawClient>,
    kept: bool,
) -> Ours {
    let script: Arc<Script> = Arc::new(script(id, exchange));
    let order = Arc::new(Mutex::new(Vec::new()));
    for (name, upstream) in &stage.upstreams {
        let (script, name, address) = (Arc::clone(&script), *name, upstream.address().to_string());
        let order = Arc::clone(&order);
        upstream.script(move |request| {
            order.lock().unwrap().push((name, request.connection));
            script.reply(name, &address, request)
        });
    }
    if !exchange.on_the_same_connection() {
        *client = None;
    }
    let mut connection = match client.take() {
        Some(connection) => connection,
        None => {
            // An HTTP/2 server answers with frames and then waits for some, for ever.
            let frames = exchange.sent.starts_with(b"PRI ");
            let limit = if frames { Duration::from_millis(300) } else { LIMIT };
            RawClient::connect(stage.gateway.address, limit).await.unwrap()
        }
    };
    send(stage, exchange, &mut connection).await;
    let answer = connection.answer(exchange.is_head()).await;
    let raw = match &exchange.got.raw {
        None => None,
        Some(_) => {
            let second = connection.answer(false).await;
            Some([whole(&answer), whole(&second)].concat())
        }
    };
    let closed = if kept { None } else { Some(closed(&mut connection).await) };
    if kept {
        *client = Some(connection);
    }
    let mut received = Vec::new();
    for (name, upstream) in &stage.upstreams {
        assert!(upstream.quiet(LIMIT).await, "{id}: half a request stays with {name}");
        let taken = upstream.take().into_iter();
        // Whether a body that is broken at once gets as far as that with its head, is chance.
        let counts = |request: &Received| request.complete || exchange.note != "bad chunk size";
        received.extend(taken.filter(counts).map(|request| (*name, request)));
    }
    let order = order.lock().unwrap();
    received.sort_by_key(|(name, request)| {
        order.iter().position(|(by, at)| by == name && *at == request.connection)
    });
    let upstream = received.into_iter().map(|(name, request)| (name.to_owned(), request)).collect();
    Ours { answer, closed, upstream, raw }
}

fn whole(answer: &Answer) -> Vec<u8> {
    [answer.head.as_slice(), &answer.raw_body].concat()
}

/// Sends the bytes; with a pause where the note says so, which ends when the first part is through.
async fn send(stage: &Stage, exchange: &Exchange, connection: &mut RawClient) {
    let sent = &exchange.sent;
    if exchange.note.contains("pause")
        && let Some(at) = sent.windows(4).position(|window| window == b"\r\nzz")
    {
        connection.send(&sent[..at + 2]).await;
        // Its head and the first chunk, framing included.
        let begun =
            stage.upstreams["U1"].has_read(b"POST /c HTTP/1.1\r\n\r\n3\r\nabc\r\n".len(), LIMIT);
        assert!(begun.await, "nothing reaches the upstream before the client is done");
        connection.send(&sent[at + 2..]).await;
    } else {
        connection.send(sent).await;
    }
}

/// Whether the gateway has closed the connection after its answer: a further request tells.
async fn closed(connection: &mut RawClient) -> bool {
    connection.send(b"GET /actuator/info HTTP/1.1\r\nHost: probe\r\n\r\n").await;
    connection.answer(false).await.status() == 0
}

/// The files of recordings, and the cases that have none.
const FILES: &[&str] = &[
    "core",
    "spec-cases",
    "edge",
    "websocket",
    "keepalive-absent",
    "keepalive-false",
    "keepalive-true",
    "webclient",
    "webclient-edge",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_answered_and_passed_on_as_recorded() {
    let mut by_strategy: Vec<Vec<Outcome>> = Vec::new();
    let mut unexplained = Vec::new();
    for strategy in STRATEGIES {
        // Side by side: what takes long is waiting for time limits.
        let replays = FILES.iter().map(|file| tokio::spawn(replay(file, strategy)));
        let mut outcomes = Vec::new();
        for replay in replays.collect::<Vec<_>>() {
            let replay = replay.await.unwrap();
            unexplained.extend(replay.unexplained);
            outcomes.extend(replay.outcomes);
        }
        by_strategy.push(outcomes);
    }
    assert!(
        unexplained.is_empty(),
        "{} differences that nobody decided:\n{}",
        unexplained.len(),
        unexplained.join("\n")
    );
    let told: Vec<String> = by_strategy.iter().map(|outcomes| page::text(outcomes)).collect();
    for (strategy, page) in STRATEGIES.iter().zip(&told) {
        assert_eq!(page, &told[0], "{strategy} gives another table than {}", STRATEGIES[0]);
    }
    page::check(&told[0]);
}
