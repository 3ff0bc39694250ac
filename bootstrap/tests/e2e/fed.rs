//! A gateway whose plugins `divide` and `websocket` send everything to one upstream.

use std::collections::HashMap;

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{LIMIT, gateway, stop, until, upstream};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

/// The gateway, its upstream, and the admin that feeds it.
pub(crate) struct Fed {
    pub(crate) gateway: RunningGateway,
    pub(crate) origin: Origin,
    _admin: FakeAdmin,
}

/// One raw answer.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    /// Names in lower case; of repeated ones all values, joined by `|`.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

fn objects(plugin: &str, upstream: &str, handle: &str) -> Vec<String> {
    let condition =
        r#"[{"paramType":"uri","operator":"startsWith","paramName":"/","paramValue":"/"}]"#;
    let handle = handle.replace('"', "\\\"");
    [
        format!(r#"{{"groupType":"PLUGIN","eventType":"MYSELF","data":[{{"id":"{plugin}","name":"{plugin}","role":"Proxy","enabled":true,"sort":200,"pluginJar":""}}]}}"#),
        format!(r#"{{"groupType":"SELECTOR","eventType":"MYSELF","data":[{{"id":"s-{plugin}","pluginName":"{plugin}","name":"s","matchMode":0,"type":1,"sort":1,"enabled":true,"logged":false,"continued":true,"handle":"","conditionList":{condition}}}]}}"#),
        format!(r#"{{"groupType":"RULE","eventType":"MYSELF","data":[{{"id":"r-{plugin}","name":"r","pluginName":"{plugin}","selectorId":"s-{plugin}","matchMode":0,"sort":1,"enabled":true,"loged":false,"handle":"{handle}","conditionDataList":{condition}}}]}}"#),
        format!(r#"{{"groupType":"DISCOVER_UPSTREAM","eventType":"UPDATE","data":[{{"selectorId":"s-{plugin}","pluginName":"{plugin}","selectorName":"s","upstreamDataList":[{{"id":"u","protocol":"http://","url":"{upstream}","status":0,"weight":50,"props":"{{}}"}}]}}]}}"#),
    ]
    .into()
}

/// Starts both; `keys` are those below `shenyu:`, `handle` is the rule's of divide.
pub(crate) async fn fed(keys: &str, handle: &str) -> Fed {
    let origin = upstream("U1");
    let address = origin.addr().to_string();
    let mut sequence = objects("websocket", &address, "{}");
    sequence.extend(objects("divide", &address, handle));
    let manners = Manners { running_mode: vec![STANDALONE.into()], sequence, ..Manners::default() };
    let admin = FakeAdmin::start(manners).await;
    let yaml = format!("{keys}  sync:\n    websocket:\n      urls: {}\n", admin.url());
    let gateway = gateway(&yaml).await;
    until(&gateway, |ready, _| ready).await;
    Fed { gateway, origin, _admin: admin }
}

impl Fed {
    /// Sends bytes on a connection of their own and reads one answer up to the end of the connection;
    /// the request must ask for that end, or get it.
    pub(crate) async fn raw(&self, sent: &[u8]) -> Raw {
        let talk = async {
            let mut stream = TcpStream::connect(self.gateway.address).await.unwrap();
            // A refusal may come while we are still sending.
            let _ = stream.write_all(sent).await;
            let mut answer = Vec::new();
            let mut chunk = vec![0; 16 * 1024];
            while let Ok(read) = stream.read(&mut chunk).await {
                if read == 0 {
                    break;
                }
                answer.extend_from_slice(&chunk[..read]);
            }
            String::from_utf8(answer).unwrap()
        };
        let text = tokio::time::timeout(LIMIT, talk).await.expect("no end of the connection");
        parse(&text)
    }

    /// A request with these further header lines, without a body.
    pub(crate) async fn ask(&self, request_line: &str, lines: &str) -> Raw {
        let sent =
            format!("{request_line} HTTP/1.1\r\nHost: gw.test\r\nConnection: close\r\n{lines}\r\n");
        self.raw(sent.as_bytes()).await
    }

    pub(crate) async fn stop(self) {
        stop(self.gateway).await;
    }
}

fn parse(text: &str) -> Raw {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers: HashMap<String, String> = HashMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        let held = headers.entry(name.to_lowercase()).or_default();
        if !held.is_empty() {
            held.push('|');
        }
        held.push_str(value.trim());
    }
    let chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let body = if chunked { joined(body) } else { body.to_owned() };
    Raw { status, headers, body }
}

/// The bytes of a chunked body, up to where it ends or breaks off.
fn joined(mut chunked: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunked.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        body.push_str(&rest[..size.min(rest.len())]);
        chunked = rest.get(size + 2..).unwrap_or_default();
    }
    body
}

impl Raw {
    /// What the echo of the upstream says about a header that reached it; of repeated ones all values.
    pub(crate) fn echoed(&self, name: &str) -> Option<String> {
        let echo: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let lines = echo["headers"].as_array().unwrap().iter();
        let values: Vec<&str> =
            lines.filter(|line| line[0] == name).map(|line| line[1].as_str().unwrap()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}
