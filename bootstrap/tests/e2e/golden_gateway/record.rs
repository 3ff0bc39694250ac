//! Recordings of requests through a stock gateway, and what their parts mean.

use base64::Engine as _;
use serde_json::Value;

/// Where the recorded upstreams were; U7 is the websocket upstream, U9 a closed port.
pub(crate) const UPSTREAM_PORTS: [(&str, u16); 8] = [
    ("U1", 9481),
    ("U2", 9482),
    ("U3", 9483),
    ("U4", 9484),
    ("U5", 9485),
    ("U6", 9486),
    ("U7", 9487),
    ("U9", 9488),
];

/// One recorded case.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) settings: String,
    pub(crate) config: Config,
    pub(crate) exchanges: Vec<Exchange>,
}

/// What was configured.
#[derive(Debug)]
pub(crate) enum Config {
    /// Group and object, in the order in which they were applied.
    Objects(Vec<(String, Value)>),
    /// A sentence: one selector whose pattern is the first word of each note, for this operator.
    PatternOfNote { operator: String },
}

/// One request of a case and what came of it.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) note: String,
    pub(crate) sent: Vec<u8>,
    pub(crate) upstream: Vec<Seen>,
    pub(crate) got: Got,
    /// The members of a websocket exchange.
    pub(crate) websocket: Option<Value>,
}

/// A request as a recorded upstream read it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) upstream: String,
    pub(crate) connection: usize,
    pub(crate) head: Vec<u8>,
    /// With its chunks; `None` where the recorder did not keep it.
    pub(crate) body: Option<Vec<u8>>,
}

/// The recorded answer.
#[derive(Debug, Default)]
pub(crate) struct Got {
    /// 0 where none came.
    pub(crate) status: u16,
    pub(crate) head: Vec<u8>,
    /// Without its chunks.
    pub(crate) body: Vec<u8>,
    pub(crate) interim: Vec<u8>,
    /// Whether the connection was closed after it; `None` where that was not looked at.
    pub(crate) closed: Option<bool>,
    /// Several answers in one go.
    pub(crate) raw: Option<Vec<u8>>,
}

/// Reads the lines of a file.
pub(crate) fn records(lines: &[Value]) -> Vec<Record> {
    lines.iter().map(record).collect()
}

fn record(line: &Value) -> Record {
    let config = match &line["config"] {
        Value::String(sentence) => {
            let operator = sentence.split("uri ").nth(1).and_then(|rest| rest.split(' ').next());
            let operator =
                operator.unwrap_or_else(|| panic!("a sentence of another form: {sentence}"));
            Config::PatternOfNote { operator: operator.to_owned() }
        }
        config => Config::Objects(
            array(config).iter().map(|item| (text(&item[0]).to_owned(), item[1].clone())).collect(),
        ),
    };
    Record {
        id: text(&line["id"]).to_owned(),
        settings: text(&line["settings"]).to_owned(),
        config,
        exchanges: array(&line["exchanges"]).iter().map(exchange).collect(),
    }
}

fn exchange(line: &Value) -> Exchange {
    let websocket = line.get("handshake").is_some().then(|| line.clone());
    let upstream = array(&line["upstream"])
        .iter()
        .map(|seen| Seen {
            upstream: seen["upstream"].as_str().unwrap_or("U7").to_owned(),
            connection: seen["conn"].as_u64().unwrap_or(0).try_into().unwrap(),
            head: bytes(&seen["head"]),
            body: seen.get("body").map(bytes),
        })
        .collect();
    Exchange {
        note: line["note"].as_str().unwrap_or_default().to_owned(),
        sent: sent(&line["sent"]),
        upstream,
        got: got(&line["got"]),
        websocket,
    }
}

fn sent(value: &Value) -> Vec<u8> {
    match value["base64"].as_str() {
        Some(base64) => base64::engine::general_purpose::STANDARD.decode(base64).unwrap(),
        None => bytes(&value["text"]),
    }
}

fn got(value: &Value) -> Got {
    let mut body = bytes(&value["body"]);
    if value["bodyLength"].as_u64().is_some_and(|length| length > body.len() as u64) {
        // Only the beginning was kept.
        body.extend_from_slice(b"(cut)");
    }
    Got {
        status: value["status"].as_u64().unwrap_or(0).try_into().unwrap(),
        head: bytes(&value["head"]),
        body,
        interim: bytes(&value["interim"]),
        closed: value["closed"].as_bool().filter(|_| value["timedOut"].as_bool() != Some(true)),
        raw: value.get("raw").map(bytes),
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("expected a text, found {value}"))
}

/// The bytes of a recorded text: a character for a byte where that is possible.
fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    let latin: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    latin.unwrap_or_else(|_| text.as_bytes().to_vec())
}

impl Exchange {
    /// Whether the request was HEAD.
    pub(crate) fn is_head(&self) -> bool {
        self.sent.starts_with(b"HEAD ")
    }

    /// Whether it went over the client connection of the exchange before.
    pub(crate) fn on_the_same_connection(&self) -> bool {
        self.note == "same client connection" || self.note == "second on the same"
    }
}
