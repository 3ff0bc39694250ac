//! `divide`: chooses an upstream by load balance; the request is then forwarded.
//!
//! Source: ShenYu 2.7.1, divide plugin. There a rule without a handle is an internal error; here it
//! has the defaults. An unknown balancer is refused by the admin, and on a gateway keeps the last
//! good rule, instead of failing each request.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_LENGTH;
use longmen_core::body::BodyLimit;
use longmen_core::chain::{
    CatalogueEntry, FieldType, Flow, Handle, HandleFault, HandleType, HitRef, Hook, HookResult,
    Notes, Plugin, RequestContext, RpcType, RuleParts, Target, TargetKind, TargetPolicy,
    read_handle,
};
use longmen_core::error::{GatewayError, Reason};
use longmen_core::model::PluginClass;
use longmen_core::upstream::{Endpoint, LoadBalance, UpstreamSet};
use serde::Deserialize;

use crate::handle::{opt_i64, opt_text};
use crate::upstreams::{self, load_balance, rule_field as field};

/// The plugin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Divide;

/// Settings of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DivideRule {
    /// How an upstream is chosen.
    pub load_balance: LoadBalance,
    /// Whether another attempt goes to another upstream.
    pub failover: bool,
    /// Attempts after the first.
    pub retry: u32,
    /// Per attempt, until the response head; `None`: as the gateway is configured.
    pub timeout: Option<Duration>,
    /// Limit of the summed header values, in bytes; `None` for no limit.
    pub header_max_size: Option<u64>,
    /// Limit of the body, in bytes; `None` for no limit.
    pub request_max_size: Option<u64>,
}

impl Default for DivideRule {
    fn default() -> Self {
        Self {
            load_balance: LoadBalance::Random,
            failover: false,
            retry: 3,
            timeout: None,
            header_max_size: None,
            request_max_size: None,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    #[serde(deserialize_with = "opt_text")]
    load_balance: Option<String>,
    #[serde(deserialize_with = "opt_text")]
    retry_strategy: Option<String>,
    #[serde(deserialize_with = "opt_i64")]
    retry: Option<i64>,
    #[serde(deserialize_with = "opt_i64")]
    timeout: Option<i64>,
    #[serde(deserialize_with = "opt_i64")]
    header_max_size: Option<i64>,
    #[serde(deserialize_with = "opt_i64")]
    request_max_size: Option<i64>,
}

impl HandleType for DivideRule {
    fn read(text: &str) -> Result<Self, Vec<HandleFault>> {
        let raw: Raw = read_handle(text)?;
        let mut faults = Vec::new();
        let load_balance = load_balance(raw.load_balance.as_deref()).unwrap_or_else(|fault| {
            faults.push(fault);
            LoadBalance::Random
        });
        let retry = raw.retry.unwrap_or(3);
        let retry = u32::try_from(retry).ok().filter(|retry| *retry <= 100).unwrap_or_else(|| {
            faults.push(HandleFault::new("retry", retry, "a number between 0 and 100"));
            0
        });
        if let Some(timeout) = raw.timeout.filter(|time| !(1..=86_400_000).contains(time)) {
            let expected = "milliseconds between 1 and 86400000";
            faults.push(HandleFault::new("timeout", timeout, expected));
        }
        // Whatever is not positive means no limit.
        let limit =
            |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok()).filter(|v| *v > 0);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            load_balance,
            failover: raw.retry_strategy.is_some_and(|strategy| strategy.trim() != "current"),
            retry,
            timeout: raw.timeout.map(|timeout| Duration::from_millis(timeout.unsigned_abs())),
            header_max_size: limit(raw.header_max_size),
            request_max_size: limit(raw.request_max_size),
        })
    }
}

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "divide",
    order: 200,
    response_order: 200,
    role: "Proxy",
    class: PluginClass::Proxy,
    label: "org.apache.shenyu.plugin.divide.DividePlugin",
    fields: &[
        field("loadBalance", FieldType::Select, "random"),
        field("retryStrategy", FieldType::Select, "current"),
        field("retry", FieldType::Number, "3"),
        field("timeout", FieldType::Number, "3000"),
        field("headerMaxSize", FieldType::Number, "10240"),
        field("requestMaxSize", FieldType::Number, "102400"),
    ],
};

impl Plugin for Divide {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        Ok(RuleParts::head_only(Handle::new(DivideRule::read(handle)?)))
    }

    fn default_rule(&self) -> RuleParts {
        RuleParts::head_only(Handle::new(DivideRule::default()))
    }

    fn applies(&self, cx: &RequestContext) -> bool {
        cx.rpc_type == RpcType::Http
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
        Hook::Ready(choose(hit, cx, |how, cx| match named(set, cx) {
            Some(endpoint) => Some(endpoint.clone()),
            None => set.choose(how, cx.client_ip()).cloned(),
        }))
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        let set = &hit.selector.upstreams;
        let mut is_named = false;
        let flow = choose(hit, cx, |how, cx| match named(set, cx) {
            Some(endpoint) => {
                is_named = true;
                Some(notes.named(set, endpoint))
            }
            None => notes.choose(set, how, cx.client_ip()),
        })?;
        match &cx.target {
            Some(target) if is_named => {
                let endpoint = &target.endpoint;
                notes.effect(format!("forwards to {endpoint}, named by the header specify-domain"));
            }
            Some(target) => {
                notes.effect(format!("forwards to {}", upstreams::one_of(set, target)));
            }
            None => {}
        }
        Ok(flow)
    }
}

/// Chooses the target, by `pick` once the limits are kept.
fn choose(
    hit: HitRef<'_>,
    cx: &mut RequestContext,
    pick: impl FnOnce(LoadBalance, &RequestContext) -> Option<Arc<Endpoint>>,
) -> HookResult {
    let default = DivideRule::default();
    let rule = hit.rule.parts.handle.get::<DivideRule>().unwrap_or(&default);
    check_limits(rule, cx)?;
    if let Some(bytes) = rule.request_max_size {
        cx.limit_body(BodyLimit { bytes, refusal: cut_off });
    }
    let endpoint = pick(rule.load_balance, cx).ok_or_else(upstreams::no_upstream)?;
    cx.target = Some(Target {
        endpoint,
        kind: TargetKind::Http,
        policy: TargetPolicy {
            timeout: rule.timeout.unwrap_or(cx.response_timeout),
            retries: rule.retry,
            failover: rule.failover,
            balance: rule.load_balance,
        },
    });
    Ok(Flow::Continue)
}

/// The upstream that the request itself names.
fn named<'s>(set: &'s UpstreamSet, cx: &RequestContext) -> Option<&'s Arc<Endpoint>> {
    let url = cx.head.headers.get("specify-domain")?;
    set.named(url.to_str().ok()?)
}

/// The limits of the rule: the summed values of all headers, and the announced length.
fn check_limits(rule: &DivideRule, cx: &RequestContext) -> Result<(), GatewayError> {
    if let Some(limit) = rule.header_max_size {
        let size: usize = cx.head.headers.values().map(http::HeaderValue::len).sum();
        if size as u64 > limit {
            return Err(GatewayError::envelope(
                Reason::HeaderTooLarge,
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                431,
                "Request Header Fields Too Large",
            ));
        }
    }
    if let Some(limit) = rule.request_max_size {
        let length = cx
            .head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<u64>().ok());
        if length.is_some_and(|length| length > limit) {
            return Err(body_too_large());
        }
    }
    Ok(())
}

/// A longer body is met while it streams: what is left of it is not waited for.
fn cut_off(_limit: u64) -> GatewayError {
    body_too_large().closing()
}

fn body_too_large() -> GatewayError {
    GatewayError::envelope(
        Reason::BodyTooLarge,
        StatusCode::PAYLOAD_TOO_LARGE,
        413,
        "Request Entity Too Large",
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longmen_core::chain::HandleType;
    use longmen_core::upstream::LoadBalance;

    use super::DivideRule;

    #[test]
    fn handles_are_read_as_the_stock_console_writes_them() {
        let rule = DivideRule::read(
            r#"{"loadBalance":"roundRobin","retryStrategy":"failover","retry":"1","timeout":"500",
                "headerMaxSize":10240,"requestMaxSize":"","unknown":[1]}"#,
        )
        .unwrap();
        assert_eq!(
            rule,
            DivideRule {
                load_balance: LoadBalance::RoundRobin,
                failover: true,
                retry: 1,
                timeout: Some(Duration::from_millis(500)),
                header_max_size: Some(10240),
                request_max_size: None,
            }
        );
        for empty in ["", "null", "{}", r#"{"loadBalance":"","retry":null}"#] {
            assert_eq!(DivideRule::read(empty).unwrap(), DivideRule::default(), "{empty}");
        }
    }

    #[test]
    fn faults_name_member_value_and_expectation() {
        let faults =
            DivideRule::read(r#"{"loadBalance":"best","retry":-1,"timeout":0}"#).unwrap_err();
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "loadBalance: best is not random, roundRobin, hash, leastActive, p2c or shortestResponse",
                "retry: -1 is not a number between 0 and 100",
                "timeout: 0 is not milliseconds between 1 and 86400000",
            ]
        );
        for (bad, field) in [("not json", ""), (r#"{"retry":"x"}"#, "retry"), ("[]", "")] {
            assert_eq!(DivideRule::read(bad).unwrap_err()[0].field, field, "{bad}");
        }
    }
}
