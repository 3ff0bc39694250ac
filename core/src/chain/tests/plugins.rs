//! The eight plugins that prove the contract, and a proxy to stand behind them.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, response};
use serde::Deserialize;

use crate::body::Body;
use crate::chain::{
    Around, Attempt, BodyFilter, BodyFlow, BodyMode, CatalogueEntry, Completion, Flow, Handle,
    HandleFault, Hit, HitRef, Hook, HookResult, Hooks, NotRetried, Notes, Plugin, Registry,
    RequestContext, RuleParts, Target, TargetKind, TargetPolicy, read_handle,
};
use crate::error::{Fault, GatewayError, Reason};
use crate::model::PluginClass;
use crate::upstream::{Endpoint, LoadBalance};

/// What the plugins saw, for assertions.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    held: AtomicUsize,
    completions: Mutex<Vec<String>>,
    attempts: Mutex<Vec<String>>,
    ends: Mutex<Vec<End>>,
}

/// What a completion says beside its outcome: reason, why not retried, the upstream.
pub(super) type End = (Option<Reason>, Option<NotRetried>, Option<String>);

impl Watch {
    /// Guards that are held now.
    pub(super) fn held(&self) -> usize {
        self.0.held.load(Ordering::SeqCst)
    }

    pub(super) fn completions(&self) -> Vec<String> {
        self.0.completions.lock().unwrap().clone()
    }

    /// Forgets what was completed so far.
    pub(super) fn forget(&self) {
        self.0.completions.lock().unwrap().clear();
    }

    pub(super) fn attempts(&self) -> Vec<String> {
        self.0.attempts.lock().unwrap().clone()
    }

    pub(super) fn ends(&self) -> Vec<End> {
        self.0.ends.lock().unwrap().clone()
    }

    fn hold(&self) -> Held {
        self.0.held.fetch_add(1, Ordering::SeqCst);
        Held(self.clone())
    }
}

struct Held(Watch);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) fn registry(watch: &Watch) -> Registry {
    let mut registry = Registry::default();
    for entry in ENTRIES {
        registry.add(TestPlugin { entry, watch: watch.clone() });
    }
    registry
}

const fn entry(name: &'static str, order: i32, class: PluginClass) -> CatalogueEntry {
    CatalogueEntry {
        name,
        order,
        response_order: order,
        role: "Test",
        class,
        label: name,
        fields: &[],
    }
}

use PluginClass::{Guard, Observe, Proxy, Transform};

static ENTRIES: &[CatalogueEntry] = &[
    entry("mover", 5, Transform),
    entry("guard", 10, Guard),
    entry("canned", 20, Transform),
    entry("header-edit", 30, Transform),
    entry("body-rewrite", 40, Transform),
    entry("slow-call", 50, Transform),
    entry("retry-around", 60, Transform),
    entry("counter", 70, Observe),
    entry("response-filter", 80, Transform),
    entry("proxy", 200, Proxy),
];

#[derive(Debug)]
struct TestPlugin {
    entry: &'static CatalogueEntry,
    watch: Watch,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Settings {
    millis: u64,
    /// Of the proxy.
    retry: u32,
    failover: bool,
    /// In milliseconds; 0 is five seconds.
    timeout: u64,
    /// Blank is random.
    load_balance: String,
}

impl Plugin for TestPlugin {
    fn entry(&self) -> &'static CatalogueEntry {
        self.entry
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        let handle = Handle::new(read_handle::<Settings>(handle)?);
        let parts = RuleParts::head_only(handle);
        let (hooks, request_body, response_body) = match self.entry.name {
            "header-edit" => (Hooks::RESPONSE_HEAD, BodyMode::Untouched, BodyMode::Untouched),
            "body-rewrite" => {
                (Hooks::COMPLETION, BodyMode::Whole { limit: 1024 }, BodyMode::Untouched)
            }
            "response-filter" => (Hooks::COMPLETION, BodyMode::Untouched, BodyMode::Filter),
            "slow-call" | "counter" => {
                (Hooks::COMPLETION, BodyMode::Untouched, BodyMode::Untouched)
            }
            "retry-around" => {
                let hooks = Hooks::AROUND.and(Hooks::ATTEMPT).and(Hooks::COMPLETION);
                (hooks, BodyMode::Untouched, BodyMode::Untouched)
            }
            _ => (Hooks::NONE, BodyMode::Untouched, BodyMode::Untouched),
        };
        Ok(RuleParts { hooks, request_body, response_body, ..parts })
    }

    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        if hit.rule.parts.hooks.has(Hooks::COMPLETION) {
            cx.keep(self.watch.hold());
        }
        match self.entry.name {
            "slow-call" => {
                let millis = hit.rule.parts.handle.get::<Settings>().map_or(0, |s| s.millis);
                Hook::pending(external_call(Duration::from_millis(millis)))
            }
            name => Hook::Ready(head(name, hit, cx, |how, peer| {
                hit.selector.upstreams.choose(how, peer).cloned()
            })),
        }
    }

    fn request_body<'a>(
        &'a self,
        _hit: &'a mut Hit,
        _cx: &'a mut RequestContext,
        body: Bytes,
    ) -> Hook<'a, Result<BodyFlow, GatewayError>> {
        Hook::pending(async move {
            tokio::task::yield_now().await;
            let mut rewritten = body.to_ascii_uppercase();
            rewritten.push(b'!');
            Ok(BodyFlow::Continue(rewritten.into()))
        })
    }

    fn around<'a>(
        &'a self,
        _hit: &'a mut Hit,
        cx: &'a mut RequestContext,
        next: &'a mut dyn Around,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send + 'a>> {
        Box::pin(async move {
            for _ in 0..2 {
                match next.call(cx).await {
                    Err(_) if cx.can_replay() => tokio::task::yield_now().await,
                    result => return result,
                }
            }
            next.call(cx).await
        })
    }

    fn attempt(&self, _hit: &mut Hit, attempt: &Attempt<'_>) {
        let outcome = match attempt.outcome {
            Ok(status) => status.as_u16().to_string(),
            Err(reason) => reason.code().to_owned(),
        };
        self.watch.0.attempts.lock().unwrap().push(format!("{}:{outcome}", attempt.number));
    }

    fn response_head<'a>(
        &'a self,
        _hit: &'a mut Hit,
        _cx: &'a mut RequestContext,
        head: &'a mut response::Parts,
    ) -> Hook<'a, HookResult> {
        head.headers.insert("x-edited", HeaderValue::from_static("answer"));
        Hook::Ready(Ok(Flow::Continue))
    }

    fn response_body_filter(
        &self,
        _hit: &mut Hit,
        _head: &mut response::Parts,
    ) -> Result<Option<Box<dyn BodyFilter>>, GatewayError> {
        Ok(Some(Box::new(Upper)))
    }

    fn completion(&self, hit: &mut Hit, completion: &Completion) {
        assert!(hit.state::<Held>().is_some(), "state lives until the completion");
        let upstream = completion.upstream.as_ref().map(|endpoint| endpoint.url.to_string());
        self.watch.0.ends.lock().unwrap().push((
            completion.reason,
            completion.not_retried,
            upstream,
        ));
        let status = completion.status.map_or(0, |status| status.as_u16());
        self.watch.0.completions.lock().unwrap().push(format!(
            "{:?} {status} attempts={} bytes={}",
            completion.outcome, completion.attempts, completion.response_bytes
        ));
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        notes.effect(format!("runs {}", self.entry.name));
        if self.entry.name == "slow-call" {
            notes.external("an external service");
            return Ok(Flow::Continue);
        }
        let set = &hit.selector.upstreams;
        head(self.entry.name, hit, cx, |how, peer| notes.choose(set, how, peer))
    }
}

/// What the plugins do that wait for nothing.
fn head(
    name: &str,
    hit: HitRef<'_>,
    cx: &mut RequestContext,
    pick: impl FnOnce(LoadBalance, IpAddr) -> Option<Arc<Endpoint>>,
) -> HookResult {
    match name {
        "guard" => {
            return Err(GatewayError::new(
                Fault::Client,
                Reason::PluginRefused,
                StatusCode::FORBIDDEN,
                "not for you",
            ));
        }
        "canned" => {
            let mut response = Response::new(Body::from("canned"));
            *response.status_mut() = StatusCode::IM_A_TEAPOT;
            return Ok(Flow::Respond(response));
        }
        // From here on the request is matched without /moved.
        "mover" => {
            let path = cx.raw_path();
            let rest = path.strip_prefix("/moved").unwrap_or(path).to_owned();
            cx.rewrite_context_path = Some(String::new());
            cx.real_url = Some(rest);
        }
        "header-edit" => {
            cx.head.headers.insert("x-edited", HeaderValue::from_static("request"));
        }
        "proxy" => {
            let default = Settings::default();
            let settings = hit.rule.parts.handle.get::<Settings>().unwrap_or(&default);
            let millis = if settings.timeout == 0 { 5000 } else { settings.timeout };
            let policy = TargetPolicy {
                timeout: Duration::from_millis(millis),
                retries: settings.retry,
                failover: settings.failover,
                balance: LoadBalance::from_name(&settings.load_balance).unwrap_or_default(),
            };
            let endpoint = pick(policy.balance, cx.connection.peer.ip());
            let kind = TargetKind::Http;
            cx.target = endpoint.map(|endpoint| Target { endpoint, kind, policy });
        }
        _ => {}
    }
    Ok(Flow::Continue)
}

/// A call to somewhere else that takes its time; bounded by the plugin, as every external call.
async fn external_call(takes: Duration) -> HookResult {
    let call = async {
        tokio::task::yield_now().await;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
    };
    match tokio::time::timeout(Duration::from_millis(10), call).await {
        Ok(()) => Ok(Flow::Continue),
        Err(_) => Err(GatewayError::new(
            Fault::Gateway,
            Reason::PluginFailed,
            StatusCode::GATEWAY_TIMEOUT,
            "the external call took too long",
        )),
    }
}

struct Upper;

impl BodyFilter for Upper {
    fn chunk(&mut self, data: Bytes) -> Result<Bytes, Box<dyn Error + Send + Sync>> {
        Ok(data.to_ascii_uppercase().into())
    }
}
