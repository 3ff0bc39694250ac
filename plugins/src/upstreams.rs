//! What the proxy plugins share.

use http::StatusCode;
use longmen_core::chain::{FieldType, FormField, FormScope, HandleFault, HookResult, Target};
use longmen_core::error::{GatewayError, Reason};
use longmen_core::upstream::{LoadBalance, UpstreamSet};

/// A share of 100; absent means always.
pub(crate) fn percentage(value: Option<i64>) -> Result<u8, Vec<HandleFault>> {
    let value = value.unwrap_or(100);
    u8::try_from(value)
        .ok()
        .filter(|value| *value <= 100)
        .ok_or_else(|| vec![HandleFault::new("percentage", value, "a number between 0 and 100")])
}

/// The balancer of a rule; absent means random.
pub(crate) fn load_balance(name: Option<&str>) -> Result<LoadBalance, HandleFault> {
    let Some(name) = name.map(str::trim) else { return Ok(LoadBalance::Random) };
    LoadBalance::from_name(name)
        .ok_or_else(|| HandleFault::new("loadBalance", name, LoadBalance::NAMES))
}

/// A field of the form of a rule.
pub(crate) const fn rule_field(
    field: &'static str,
    field_type: FieldType,
    default_value: &'static str,
) -> FormField {
    FormField { field, scope: FormScope::Rule, field_type, default_value }
}

/// The upstreams of a selector, for people.
pub(crate) fn one_of(upstreams: &UpstreamSet, target: &Target) -> String {
    match upstreams.members().len() {
        0 | 1 => target.endpoint.to_string(),
        count => format!("one of {count} upstreams by {}", target.policy.balance.name()),
    }
}

/// The answer where no selector of a proxy plugin matched.
pub(crate) fn no_selector(plugin: &str) -> HookResult {
    let text = format!("{plugin}:Can not find selector, please check your configuration!");
    Err(GatewayError::envelope(Reason::SelectorNotFound, StatusCode::NOT_FOUND, -107, text))
}

/// The answer where a selector of a proxy plugin matched, but none of its rules.
pub(crate) fn no_rule(plugin: &str) -> HookResult {
    let text = format!("{plugin}:Rule not found!");
    Err(GatewayError::envelope(Reason::RuleNotFound, StatusCode::NOT_FOUND, -102, text))
}

/// The answer where the selector has no usable upstream.
pub(crate) fn no_upstream() -> GatewayError {
    GatewayError::envelope(
        Reason::NoUpstream,
        StatusCode::SERVICE_UNAVAILABLE,
        -119,
        "Can not find healthy upstream url, please check your configuration!",
    )
}
