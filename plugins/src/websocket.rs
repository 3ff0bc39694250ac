//! `websocket`: routes websocket handshakes by selectors and rules of its own.
//!
//! Source: ShenYu 2.7.1, websocket plugin. There the client is told 101 before the upstream is
//! asked; here the upstream switches first.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::chain::{
    CatalogueEntry, FieldType, Flow, Handle, HandleFault, HandleType, HitRef, Hook, HookResult,
    Notes, Plugin, RequestContext, RpcType, RuleParts, Target, TargetKind, TargetPolicy,
    read_handle,
};
use longmen_core::model::PluginClass;
use longmen_core::upstream::{Endpoint, LoadBalance};
use serde::Deserialize;

use crate::handle::{opt_i64, opt_text};
use crate::upstreams::{self, load_balance, rule_field as field};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebSocket;

/// Settings of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSocketRule {
    /// How an upstream is chosen.
    pub load_balance: LoadBalance,
    /// Until the upstream has switched.
    pub timeout: Duration,
}

impl Default for WebSocketRule {
    fn default() -> Self {
        Self { load_balance: LoadBalance::Random, timeout: Duration::from_millis(3000) }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    #[serde(deserialize_with = "opt_text")]
    load_balance: Option<String>,
    #[serde(deserialize_with = "opt_i64")]
    timeout: Option<i64>,
}

impl HandleType for WebSocketRule {
    fn read(text: &str) -> Result<Self, Vec<HandleFault>> {
        let raw: Raw = read_handle(text)?;
        let load_balance =
            load_balance(raw.load_balance.as_deref()).map_err(|fault| vec![fault])?;
        // The reference never used this member: a value it let through is not refused, but 0 and
        // less mean the default.
        let timeout = raw.timeout.filter(|timeout| *timeout > 0).unwrap_or(3000);
        Ok(Self { load_balance, timeout: Duration::from_millis(timeout.unsigned_abs()) })
    }
}

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "websocket",
    order: 200,
    response_order: 200,
    role: "Proxy",
    class: PluginClass::Proxy,
    label: "org.apache.shenyu.plugin.websocket.WebSocketPlugin",
    fields: &[
        field("loadBalance", FieldType::Select, "random"),
        field("retry", FieldType::Number, "0"),
        field("timeout", FieldType::Number, "3000"),
    ],
};

impl Plugin for WebSocket {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        Ok(RuleParts::head_only(Handle::new(WebSocketRule::read(handle)?)))
    }

    fn default_rule(&self) -> RuleParts {
        RuleParts::head_only(Handle::new(WebSocketRule::default()))
    }

    fn applies(&self, cx: &RequestContext) -> bool {
        cx.rpc_type == RpcType::WebSocket
    }

    fn no_selector(&self, _cx: &mut RequestContext) -> HookResult {
        upstreams::no_selector(ENTRY.name)
    }

    fn no_rule(&self, _cx: &mut RequestContext) -> HookResult {
        upstreams::no_rule(ENTRY.name)
    }

    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        let set = &hit.selector.upstreams;
        choose(hit, cx, |how, cx| set.choose(how, cx.client_ip()).cloned());
        Hook::Ready(Ok(Flow::Continue))
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        let set = &hit.selector.upstreams;
        choose(hit, cx, |how, cx| notes.choose(set, how, cx.client_ip()));
        match &cx.target {
            Some(target) => {
                notes.effect(format!("opens a websocket to {}", upstreams::one_of(set, target)));
            }
            None => notes.effect("there is no upstream that could be chosen"),
        }
        Ok(Flow::Continue)
    }
}

/// Chooses the target, if `pick` finds an upstream.
fn choose(
    hit: HitRef<'_>,
    cx: &mut RequestContext,
    pick: impl FnOnce(LoadBalance, &RequestContext) -> Option<Arc<Endpoint>>,
) {
    let default = WebSocketRule::default();
    let rule = hit.rule.parts.handle.get::<WebSocketRule>().unwrap_or(&default);
    // Without an upstream the reference goes on and ends in "no result"; so does the driver.
    if let Some(endpoint) = pick(rule.load_balance, cx) {
        cx.target = Some(Target {
            endpoint,
            kind: TargetKind::WebSocket,
            policy: TargetPolicy {
                timeout: rule.timeout,
                retries: 0,
                failover: false,
                balance: rule.load_balance,
            },
        });
    }
}
