//! An admin and a gateway just big enough to be measured: one server that keeps rules in a map.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use longmen_benchmark::origin::Origin;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

/// What the fake does not do right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Each edit takes effect so much later than it is answered.
    Late(Duration),
    /// Deleted rules go on serving.
    KeepsDeleted,
    /// A path of the table is served once, then answered with 503.
    Sheds,
}

pub(crate) struct Fake {
    pub(crate) url: String,
    pub(crate) state: Arc<State>,
    server: tokio::task::JoinHandle<()>,
    _origin: Origin,
}

pub(crate) struct State {
    flaw: Flaw,
    tables: Mutex<Tables>,
    upstream: String,
}

#[derive(Default)]
pub(crate) struct Tables {
    ids: u64,
    pub(crate) selectors: BTreeMap<String, Vec<String>>,
    pub(crate) rules: HashMap<String, Rule>,
    /// What the gateway serves, and from when.
    routes: HashMap<String, (bool, Instant)>,
    /// Paths of the table that were asked for.
    served: HashSet<String>,
}

pub(crate) struct Rule {
    selector: String,
    name: String,
    path: String,
}

impl Fake {
    pub(crate) async fn start(flaw: Flaw) -> Self {
        let origin = Origin::builder().start().expect("a free port on loopback");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let upstream = origin.addr().to_string();
        let state = Arc::new(State { flaw, tables: Mutex::default(), upstream });
        let server = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { url, state, server, _origin: origin }
    }

    pub(crate) fn upstream(&self) -> String {
        self.state.upstream.clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    loop {
        let (stream, _) = listener.accept().await.expect("accept");
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            let _ = served.await;
        });
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("the whole body").to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let target = head.uri.path_and_query().expect("a path").to_string();
    if let Some(answer) = state.proxied(head.uri.path()) {
        return Ok(answer);
    }
    let data = state.tables().rest(&head.method, &target, &body, state.flaw);
    let envelope = match data {
        Ok(data) => json!({ "code": 200, "message": "", "data": data }),
        Err(what) => json!({ "code": 500, "message": what, "data": null }),
    };
    Ok(Response::new(envelope.to_string().into()))
}

impl State {
    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("no test panics while it holds the tables")
    }

    /// The gateway's half: paths of the measurement begin with `/edits-`.
    fn proxied(&self, path: &str) -> Option<Response<Full<Bytes>>> {
        if !path.starts_with("/edits-") {
            return None;
        }
        let mut tables = self.tables();
        let of_the_table = path.contains("/r");
        let again = of_the_table && !tables.served.insert(path.to_owned());
        if self.flaw == Flaw::Sheds && again {
            let mut shed = Response::new(Full::from("{\"code\":503}"));
            *shed.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Some(shed);
        }
        let (now_on, since) =
            tables.routes.get(path).copied().unwrap_or_else(|| (false, Instant::now()));
        // Until an edit takes effect, what held before it does.
        let on = if Instant::now() >= since { now_on } else { !now_on };
        if on {
            let mut answer = Response::new(Full::from(json!({ "target": path }).to_string()));
            answer.headers_mut().insert("x-upstream", "u".parse().expect("a value"));
            return Some(answer);
        }
        let mut none = Response::new(Full::from("{\"code\":-107}"));
        *none.status_mut() = StatusCode::NOT_FOUND;
        Some(none)
    }
}

impl Tables {
    fn rest(
        &mut self,
        method: &Method,
        target: &str,
        body: &Value,
        flaw: Flaw,
    ) -> Result<Value, String> {
        let path = target.split('?').next().unwrap_or(target);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let condition = |list: &str| text(&body[list][0]["paramValue"]);
        match (method.as_str(), path) {
            ("GET", "/platform/login") => Ok(json!({ "token": "t" })),
            ("POST", "/selector") => {
                let id = self.id();
                self.selectors.insert(id.clone(), Vec::new());
                Ok(id.into())
            }
            ("POST", "/proxy-selector/binding") => {
                let urls = body["discoveryUpstreams"].as_array().ok_or("no upstreams")?;
                let urls = urls.iter().map(|upstream| text(&upstream["url"])).collect();
                self.selectors.insert(text(&body["selectorId"]), urls);
                Ok(Value::Null)
            }
            ("POST", "/rule") => {
                let (id, path) = (self.id(), condition("ruleConditions"));
                self.route(&path, true, flaw);
                let (selector, name) = (text(&body["selectorId"]), text(&body["name"]));
                self.rules.insert(id, Rule { selector, name, path });
                Ok(1.into())
            }
            ("GET", "/rule") => {
                let asked = |rule: &Rule| {
                    target.contains(&format!("selectorId={}&name={}&", rule.selector, rule.name))
                };
                let rows = self.rules.iter().filter(|(_, rule)| asked(rule));
                let rows: Vec<_> =
                    rows.map(|(id, rule)| json!({ "id": id, "name": rule.name })).collect();
                Ok(json!({ "dataList": rows }))
            }
            ("POST", "/rule/batchEnabled") => {
                let path = self.rules[&text(&body["ids"][0])].path.clone();
                self.route(&path, body["enabled"] == true, flaw);
                Ok(Value::Null)
            }
            ("DELETE", "/rule/batch") => {
                let rule = self.rules.remove(&text(&body["ids"][0])).ok_or("no such rule")?;
                if flaw != Flaw::KeepsDeleted {
                    self.route(&rule.path, false, flaw);
                }
                Ok(1.into())
            }
            ("DELETE", "/selector/batch") => {
                for id in body["ids"].as_array().ok_or("no ids")? {
                    self.selectors.remove(id.as_str().ok_or("an id is no text")?);
                    self.rules.retain(|_, rule| rule.selector != *id);
                }
                Ok(1.into())
            }
            ("PUT", _) if path.starts_with("/rule/") => {
                let new = condition("ruleConditions");
                let rule = self.rules.get_mut(&path["/rule/".len()..]).ok_or("no such rule")?;
                let old = std::mem::replace(&mut rule.path, new.clone());
                self.route(&old, false, flaw);
                self.route(&new, true, flaw);
                Ok(1.into())
            }
            _ => Err(format!("the fake does not know {method} {target}")),
        }
    }

    fn route(&mut self, path: &str, on: bool, flaw: Flaw) {
        let delay = if let Flaw::Late(delay) = flaw { delay } else { Duration::ZERO };
        self.routes.insert(path.to_owned(), (on, Instant::now() + delay));
    }

    fn id(&mut self) -> String {
        self.ids += 1;
        self.ids.to_string()
    }
}
