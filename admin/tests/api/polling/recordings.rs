//! Replays what was recorded of a stock admin that gateways poll: calls by hand, and those of a
//! stock gateway from its start on. The changes in between are made by the API.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::poller::{DEADLINE, held, until};
use crate::compare::{Bindings, Order};
use crate::golden;
use crate::scene::{Scene, binding, rule, selector};
use crate::support::{Answer, Database, TestAdmin};
use crate::sync::as_seeded;

/// The page in `docs` that shows what differs; the part about the admin.
const PAGE: &str = "../docs/golden-polling.md";

/// A call that we answer differently on purpose, or cannot answer yet.
struct Difference {
    /// File and id, or number of the line.
    which: &'static [&'static str],
    recorded: &'static str,
    ours: &'static str,
    why: &'static str,
    /// The status of ours, and what its body must have in it.
    is: (u16, &'static str),
}

const QUICK: &str = "a stock gateway takes a 200 without data for \"nothing changed\" and asks again \
                     at once; another status makes it wait five seconds";

const ON_PURPOSE: &[Difference] = &[
    Difference {
        which: &["fetch-no-namespace"],
        recorded: "500 `namespaceId is null`",
        ours: "the default namespace",
        why: "gateways of 2.6.1 name no namespace",
        is: (200, r#""RULE":{"md5":"d751713988987e9331980363e24189ce""#),
    },
    Difference {
        which: &["fetch-unknown-namespace"],
        recorded: "HTTP 200, code 500, no data",
        ours: "the same body with 404",
        why: QUICK,
        is: (404, "namespace is not exist"),
    },
    Difference {
        which: &["fetch-unknown-group"],
        recorded: "HTTP 200, code 500, no data",
        ours: "the same body with 400",
        why: QUICK,
        is: (400, "No enum constant org.apache.shenyu.common.enums.ConfigGroupEnum.NOPE"),
    },
    Difference {
        which: &["fetch-no-group"],
        recorded: "HTTP 200, code 500, `The system is busy …`",
        ours: "400 that names the parameter",
        why: QUICK,
        is: (400, "groupKeys is missing"),
    },
    Difference {
        which: &["listen-client-newer"],
        recorded: "a null pointer: HTTP 200, code 500, no data",
        ours: "the group is named",
        why: "other digests are other objects, whichever is newer; the time that is handed out next is \
              later than the gateway's, or it would not take it",
        is: (200, r#""data":["RULE"]"#),
    },
    Difference {
        which: &["listen-seven-groups"],
        recorded: "500 `group param invalid:null`",
        ours: "held, and answered",
        why: "gateways of 2.6.1 do not know the eighth group",
        is: (200, r#""data":[]"#),
    },
    Difference {
        which: &["listen-unknown-namespace"],
        recorded: "a null pointer: HTTP 200, code 500, no data",
        ours: "404 `namespace is not exist`",
        why: QUICK,
        is: (404, "namespace is not exist"),
    },
    Difference {
        which: &["gateway 9", "gateway 13"],
        recorded: "`PROXY_SELECTOR`, whose list is and stays empty",
        ours: "the groups that differ, all of them",
        why: "only groups whose objects changed are named; the stock gateway takes nothing over and \
              pauses five seconds, while requests have no upstream",
        is: (200, r#""DISCOVER_UPSTREAM""#),
    },
    Difference {
        which: &["gateway 11"],
        recorded: "`SELECTOR` besides",
        ours: "`DISCOVER_UPSTREAM`",
        why: "ours does not repeat the instances in the settings of the selector",
        is: (200, r#""data":["DISCOVER_UPSTREAM"]"#),
    },
    Difference {
        which: &["gateway 12"],
        recorded: "the selector repeats the instances in its settings; the list has no namespace",
        ours: "the settings as they were saved; the list has its namespace",
        why: "the list of upstreams is what counts",
        is: (200, r#""url":"127.0.0.1:9481","status":0,"weight":50"#),
    },
];

const NOT_YET: &[Difference] = &[
    Difference {
        which: &["change-ai-key"],
        recorded: "a key is made",
        ours: "no such endpoint",
        why: "keys of the AI proxy",
        is: (200, r#""code":500"#),
    },
    Difference {
        which: &["instances"],
        recorded: "the polling gateway as an instance",
        ours: "no instance; `/v1/gateways` lists it",
        why: "gateways that poll are not among the instances yet",
        is: (200, r#""dataList":[]"#),
    },
];

/// How a file went.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    calls: usize,
    equal: usize,
    on_purpose: usize,
    not_yet: usize,
}

/// One recorded call.
struct Call {
    which: String,
    request: Value,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Call {
    fn is(&self, path: &str) -> bool {
        self.request["path"].as_str().unwrap().starts_with(path)
    }
}

/// A text of the recorder as JSON; times are no numbers there.
fn parsed(text: &str) -> Value {
    serde_json::from_str(&text.replace("<ms>", "0"))
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn calls(file: &str) -> Vec<Call> {
    let calls = golden::lines(&format!("http-polling/{file}")).into_iter().zip(1..);
    calls
        .map(|(line, number)| match line["id"].as_str() {
            Some(id) => Call {
                which: id.to_owned(),
                status: u16::try_from(line["status"].as_u64().unwrap()).unwrap(),
                headers: serde_json::from_value(line["headers"].clone()).unwrap(),
                body: line["text"].as_str().map_or_else(|| line["body"].clone(), parsed),
                request: line["request"].clone(),
            },
            None => Call {
                which: format!("gateway {number}"),
                status: u16::try_from(line["response"]["status"].as_u64().unwrap()).unwrap(),
                headers: [(
                    "Content-Type".to_owned(),
                    line["response"]["contentType"].as_str().unwrap().to_owned(),
                )]
                .into(),
                body: parsed(line["response"]["body"].as_str().unwrap()),
                request: line["request"].clone(),
            },
        })
        .collect()
}

/// One run over a file.
struct Replay<'a> {
    scene: &'a Scene,
    bindings: Bindings,
    /// For each group and recorded digest what ours was at the same call, and its time.
    digests: BTreeMap<(String, String), (String, i64)>,
    outcome: Outcome,
}

impl<'a> Replay<'a> {
    fn new(scene: &'a Scene) -> Self {
        let (bindings, digests) = (Bindings::default(), BTreeMap::new());
        Self { scene, bindings, digests, outcome: Outcome::default() }
    }

    /// The recorded parameters with our digests and times in place of the recorded ones.
    fn ours(&self, text: &str) -> String {
        let pairs = text.split('&').map(|pair| {
            let Some((name, md5)) = pair.split_once('=') else { return pair.to_owned() };
            let Some(md5) = md5.strip_suffix(",<ms>") else { return pair.to_owned() };
            let known = self.digests.get(&(name.to_owned(), md5.to_owned())).cloned();
            // A digest of nobody, and a time later than any.
            let (md5, ms) = known.unwrap_or_else(|| {
                assert_eq!(md5, "0".repeat(32), "{name}: a digest that no fetch has shown");
                let mut latest = self.digests.values().map(|(_, ms)| *ms).max().unwrap();
                latest += 60_000;
                (md5.to_owned(), latest)
            });
            format!("{name}={md5},{ms}")
        });
        pairs.collect::<Vec<_>>().join("&")
    }

    async fn send(&self, call: &Call) -> Answer {
        let filled = |text: &str| self.bindings.fill(text).unwrap();
        let path = call.request["path"].as_str().unwrap();
        let path = match path.split_once('?') {
            Some((path, query)) => format!("{path}?{}", filled(&self.ours(query))),
            None => filled(path),
        };
        let mut headers = Vec::new();
        if call.request["token"] != "none" {
            headers.push(("X-Access-Token".to_owned(), self.scene.token().to_owned()));
        }
        if let Some(kind) = call.request["contentType"].as_str() {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        for (name, value) in call.request["headers"].as_object().into_iter().flatten() {
            if ["x-real-port", "bootstrapinstanceinfo"].contains(&&*name.to_lowercase()) {
                headers.push((name.clone(), value.as_str().unwrap().to_owned()));
            }
        }
        let body = call.request["body"].as_str().filter(|body| !body.is_empty());
        let body = body.map(|body| filled(&self.ours(body)));
        let method = call.request["method"].as_str().unwrap();
        self.scene.admin.call(method, &path, &headers, body).await
    }

    /// Sends a question that is held, makes the change, and returns the answer. A hold that ended
    /// before the change is asked again, as gateways do.
    async fn woken(&self, call: &Call, change: impl Future<Output = ()>) -> Answer {
        let before = held(&self.scene.admin);
        let asking = async {
            loop {
                let answer = self.send(call).await;
                if answer.json.as_ref().unwrap()["data"] != json!([]) {
                    return answer;
                }
            }
        };
        let changing = async {
            until(|| held(&self.scene.admin) > before).await;
            change.await;
        };
        let both = async { tokio::join!(asking, changing).0 };
        tokio::time::timeout(DEADLINE, both).await.expect("an answer in time")
    }

    fn judge(&mut self, call: &Call, answer: &Answer) {
        self.outcome.calls += 1;
        self.learn(call, answer);
        let of =
            |list: &'static [Difference]| list.iter().find(|one| one.which.contains(&&*call.which));
        let same = self.same(call, answer);
        match (of(ON_PURPOSE), of(NOT_YET)) {
            (None, None) => {
                assert_eq!(same, Ok(()), "{}: {}", call.which, answer.text);
                self.outcome.equal += 1;
            }
            (Some(difference), _) | (_, Some(difference)) => {
                assert!(same.is_err(), "{} does not differ any more", call.which);
                let (status, part) = difference.is;
                assert_eq!(answer.status, status, "{}: {}", call.which, answer.text);
                assert!(answer.text.contains(part), "{}: {}", call.which, answer.text);
                if of(ON_PURPOSE).is_some() {
                    self.outcome.on_purpose += 1;
                } else {
                    self.outcome.not_yet += 1;
                }
            }
        }
    }

    fn same(&mut self, call: &Call, answer: &Answer) -> Result<(), String> {
        if answer.status != call.status {
            return Err(format!("status {}", answer.status));
        }
        for (name, value) in &call.headers {
            let got = answer.headers.get(name).map(|value| value.to_str().unwrap());
            if got != Some(value) {
                return Err(format!("header {name}: wanted {value}, got {got:?}"));
            }
        }
        let Some(mut got) = answer.json.clone() else { return Err("no JSON".to_owned()) };
        let mut wanted = call.body.clone();
        if call.is("/configs/fetch") {
            groups(&mut wanted, &mut got)?;
        }
        let mut bindings = self.bindings.clone();
        bindings.value(&wanted, &got, Order::MeansNothing, "")?;
        self.bindings = bindings;
        Ok(())
    }

    /// Remembers which digest of ours stands for which recorded one.
    fn learn(&mut self, call: &Call, answer: &Answer) {
        if !call.is("/configs/fetch") || answer.status != 200 {
            return;
        }
        let json = answer.json.as_ref().unwrap();
        for (group, recorded) in call.body["data"].as_object().into_iter().flatten() {
            let ours = &json["data"][group];
            let md5 = |value: &Value| value["md5"].as_str().unwrap().to_owned();
            let value = (md5(ours), ours["lastModifyTime"].as_i64().unwrap());
            self.digests.insert((group.clone(), md5(recorded)), value);
        }
    }
}

/// Makes two fetches comparable: the seed of the recorded admin was another, times differ, and the
/// digest where ids or the seed do.
fn groups(wanted: &mut Value, got: &mut Value) -> Result<(), String> {
    for (name, group) in wanted["data"].as_object_mut().into_iter().flatten() {
        let ours = &mut got["data"][name];
        let exact = !group["data"].to_string().contains("<id") && name != "PLUGIN";
        if exact && group["md5"] != ours["md5"] {
            return Err(format!("{name}: md5 {} for {}", ours["md5"], group["md5"]));
        }
        if !ours["lastModifyTime"].is_i64() {
            return Err(format!("{name}: lastModifyTime {}", ours["lastModifyTime"]));
        }
        for one in [&mut *group, ours] {
            (one["md5"], one["lastModifyTime"]) = (Value::Null, Value::Null);
        }
        group["groupType"] = name.as_str().into();
        as_seeded(group);
        group["groupType"] = Value::Null;
    }
    Ok(())
}

async fn by_hand(scene: &Scene) -> Outcome {
    let mut replay = Replay::new(scene);
    let calls = calls("fetch-and-listen.jsonl");
    let mut rest = calls.iter();
    while let Some(call) = rest.next() {
        let answer = if call.which.starts_with("listen-woken") {
            let change = rest.next().expect("what wakes follows");
            let answered = std::cell::OnceCell::new();
            let changing = async {
                let _ = answered.set(replay.send(change).await);
            };
            let answer = replay.woken(call, changing).await;
            replay.judge(change, answered.get().unwrap());
            answer
        } else {
            replay.send(call).await
        };
        replay.judge(call, &answer);
    }
    replay.outcome
}

/// What was done to the recorded admin while the gateway waited, by the number of the question.
async fn change(scene: &Scene, number: &str) {
    let id = || async {
        let path = "/selector?currentPage=1&pageSize=12&name=followed&pluginId=5\
                    &namespaceId=649330b6-c2d7-4edc-be8e-8a54df9eb385";
        let page = scene.get(path).await;
        page["dataList"][0]["id"].as_str().unwrap().to_owned()
    };
    match number {
        "gateway 5" => {
            let mut body = selector("followed");
            body["loged"] = false.into();
            scene.ok("POST", "/selector", body).await;
        }
        "gateway 7" => {
            let mut body = rule(&id().await, "all");
            body["loged"] = false.into();
            body["handle"] =
                "{\"loadBalance\":\"random\",\"retryStrategy\":\"current\",\"retry\":0,\
                              \"timeout\":3000}"
                    .into();
            body["ruleConditions"] = json!([{"paramType": "uri", "operator": "startsWith",
                "paramName": "/", "paramValue": "/"}]);
            scene.ok("POST", "/rule", body).await;
        }
        "gateway 9" => {
            let body = binding(&id().await, "followed", &[9481]);
            scene.ok("POST", "/proxy-selector/binding", body).await;
        }
        _ => {
            scene
                .ok(
                    "DELETE",
                    "/selector/batch",
                    json!({"ids": [id().await], "namespaceId": DEFAULT_NAMESPACE}),
                )
                .await;
        }
    }
}

async fn of_a_gateway(scene: &Scene) -> Outcome {
    let mut replay = Replay::new(scene);
    for call in calls("gateway.jsonl") {
        let changed = ["gateway 5", "gateway 7", "gateway 9", "gateway 13"];
        let answer = if changed.contains(&&*call.which) {
            replay.woken(&call, change(scene, &call.which)).await
        } else {
            replay.send(&call).await
        };
        replay.judge(&call, &answer);
    }
    replay.outcome
}

async fn scene(database: Database) -> Scene {
    let admin = TestAdmin::on_with(database, |config| {
        config.sync.http.hold = Duration::from_secs(1);
        config.sync.websocket.enabled = false;
    });
    Scene::of(admin.await).await
}

async fn the_recorded_calls_are_answered(database: Database) {
    let first = scene(database).await;
    let by_hand = by_hand(&first).await;
    first.stop().await;
    let second = scene(database).await;
    let of_a_gateway = of_a_gateway(&second).await;
    second.stop().await;
    check_page(&page(&[("fetch-and-listen.jsonl", by_hand), ("gateway.jsonl", of_a_gateway)]));
}

#[tokio::test]
async fn the_recorded_calls_are_answered_on_sqlite() {
    the_recorded_calls_are_answered(Database::Sqlite).await;
}

#[tokio::test]
async fn the_recorded_calls_are_answered_on_postgres() {
    the_recorded_calls_are_answered(Database::Postgres).await;
}

/// The page must say what the run found. `UPDATE_GOLDEN_COVERAGE=1` writes it.
fn check_page(page: &str) {
    if !golden::folder().1 {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_GOLDEN_COVERAGE").is_some() {
        fs::write(&path, page).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "{PAGE} is old: run the test with UPDATE_GOLDEN_COVERAGE=1");
}

fn page(outcomes: &[(&str, Outcome)]) -> String {
    let mut page = "# Recordings of polling, the admin's side\n\n\
        Written by the test `polling::recordings`, which sends every recorded call of gateways that poll \
        to our admin, on SQLite\nand on PostgreSQL, each file to a fresh database, and compares status, \
        headers and body. Digests are equal where no ids\nand no seed data are in the text; the times of a \
        group grow. The other side: [golden-polling-gateway.md](golden-polling-gateway.md).\n\n\
        | recording | calls | alike | different on purpose | not yet |\n|---|---|---|---|---|\n"
        .to_owned();
    for (file, outcome) in outcomes {
        let Outcome { calls, equal, on_purpose, not_yet } = outcome;
        let _ = writeln!(page, "| `{file}` | {calls} | {equal} | {on_purpose} | {not_yet} |");
    }
    for (title, list) in [("Different on purpose", ON_PURPOSE), ("Not yet", NOT_YET)] {
        let _ =
            write!(page, "\n## {title}\n\n| call | reference | ours | why |\n|---|---|---|---|\n");
        for Difference { which, recorded, ours, why, .. } in list {
            let _ = writeln!(page, "| {} | {recorded} | {ours} | {why} |", which.join(", "));
        }
    }
    page
}
