//! The answer: what a request comes to, step by step. Secrets are masked already.

use serde::Serialize;

/// What a request comes to, and why.
///
/// Where chance has a say, this is the likelier way at each turn, and [`ways`](Self::ways) has the
/// others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The version of the configuration that was asked; 0 from a stock admin.
    pub version: u64,
    /// How long it took, in microseconds.
    pub elapsed_us: u64,
    /// The protocol the request is treated as: `http`, `websocket`, or one that metadata names.
    pub protocol: String,
    /// The address that counts as the client's.
    pub client_ip: String,
    /// What it comes to.
    #[serde(flatten)]
    pub way: Way,
    /// The ways that chance may choose instead; at most [`MAX_WAYS`](super::MAX_WAYS), the rest left
    /// out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
    /// What became of the entry that was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Parts of the question that have no influence, and what was assumed where it says nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// One way through the plugins.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// The chance of this way, in per cent; absent where nothing is left to chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// What chance decided on it, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<String>,
    /// What the client gets, as far as it is the gateway's to say.
    pub outcome: Outcome,
    /// Every plugin that is configured, in running order.
    pub steps: Vec<Step>,
    /// The request as it would be sent; `None` where nothing is.
    pub request: Option<Sent>,
    /// The upstreams that the proxy plugin chooses from, then those that are configured and left out.
    pub upstreams: Vec<Candidate>,
}

/// How a way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// The request goes to an upstream.
    Forwarded,
    /// A plugin, or what stands before the plugins, answers.
    Answered,
    /// The gateway refuses the request.
    Refused,
}

/// What the client gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// How it ends.
    pub ending: Ending,
    /// The status; `None` where the upstream decides.
    pub status: Option<u16>,
    /// The code in the body of a refusal, or the `grpc-status`; `None` without one.
    pub code: Option<i32>,
    /// The stable reason of a refusal, as in access log and metrics.
    pub reason: Option<&'static str>,
    /// What happens, in words.
    pub text: String,
}

/// What becomes of a request at one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The plugin is switched off.
    Off,
    /// This gateway does not have it, or has it switched off, and does without.
    Missing,
    /// It does not look at such requests.
    PassedBy,
    /// No selector applies.
    NoSelector,
    /// A selector applies, but none of its rules.
    NoRule,
    /// Selector and rule apply.
    Matched,
    /// It is a guard that is meant for this request, or could be, and cannot run.
    Unavailable,
    /// The request has ended before.
    NotReached,
    /// It stands before the plugins, and ends the request.
    Edge,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name.
    pub plugin: String,
    /// Its place.
    pub order: i32,
    /// What becomes of the request at it.
    pub state: State,
    /// Whether the request ends here.
    pub ends: bool,
    /// The path that it matches on, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Set where a guard is asked once more, for the canonical form of the path.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub canonical: bool,
    /// How many selectors and rules the request is compared with.
    pub considered: usize,
    /// The list of selectors, where the plugin was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selectors: Option<Looked>,
    /// The rules of the selector that applies, where they are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Looked>,
    /// The selector that applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Named>,
    /// The rule that applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Named>,
    /// The selectors and rules that were considered, first to last in the order of precedence; those
    /// that are switched off and would apply follow.
    pub candidates: Vec<Entry>,
    /// What the plugin does, in words; empty where it does nothing.
    pub effect: String,
    /// Calls to elsewhere that it would make; none was made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<String>,
}

/// What was looked at of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Looked {
    /// How many there are.
    pub total: usize,
    /// How many of them the request is compared with; the index rules the others out.
    pub considered: usize,
    /// How many of these are not among the candidates, since there are too many.
    pub left_out: usize,
}

/// A selector or rule by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The id; `default_rule` for the rule of a selector that does not go on to its rules.
    pub id: String,
    /// The name.
    pub name: String,
    /// By which rule it was taken; empty where that is not the question.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Whether an entry is a selector or a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A selector.
    Selector,
    /// A rule.
    Rule,
}

/// A selector or rule that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Which of the two.
    pub kind: Kind,
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// Whether it is the one that is used.
    pub chosen: bool,
    /// Why it is used or not.
    pub why: String,
    /// Its conditions.
    pub conditions: Vec<Asked>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// What is looked at: `uri`, `header X-Env`, …
    pub param: String,
    /// The operator.
    pub operator: String,
    /// What is asked for.
    pub wanted: String,
    /// What the request holds; `None` for nothing.
    pub got: Option<String>,
    /// Whether it holds.
    pub ok: bool,
    /// Set where those before it settle the outcome, so that a request is not asked for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Why it can never hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The request as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The method.
    pub method: String,
    /// Scheme, host and port of the likeliest upstream, path and query.
    pub url: String,
    /// The headers, in the order they are sent.
    pub headers: Vec<Header>,
    /// Bytes of the body; `None` where they are not known.
    pub body_bytes: Option<u64>,
    /// How long an attempt may take to the response head, in milliseconds.
    pub timeout_ms: u64,
    /// Attempts after the first, where they are safe.
    pub retries: u32,
    /// Whether a further attempt goes to another upstream.
    pub failover: bool,
    /// How an upstream is chosen; `None` where the request names it.
    pub load_balance: Option<&'static str>,
}

/// One header line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Header {
    /// The name, in lower case.
    pub name: String,
    /// The value.
    pub value: String,
}

/// An upstream that may be chosen, or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// As configured.
    pub url: String,
    /// The chance that it is chosen, in per cent, by the weights and counts of this moment.
    pub chance: f64,
    /// Whether it is known to be the next.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub next: bool,
    /// Whether neither probes nor failed requests speak against it.
    pub healthy: bool,
    /// The configured weight.
    pub weight: i64,
    /// The weight it has now, where that is another: it warms up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_now: Option<u32>,
    /// Requests under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
    /// Why it is not chosen, or what happens to requests for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of the entry that was expected to take the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Expected {
    /// The plugin it belongs to.
    pub plugin: String,
    /// The selector that was expected, or that has the expected rule.
    pub selector: Named,
    /// The rule that was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Named>,
    /// Whether it takes the request.
    pub taken: bool,
    /// Why, or why not: the first thing that speaks against it.
    pub why: String,
    /// The condition that fails first, where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails: Option<Asked>,
    /// All its conditions, those of the selector first where that is what fails.
    pub conditions: Vec<Asked>,
    /// What takes the request instead, within the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<Instead>,
}

/// What takes a request at a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instead {
    /// The selector.
    pub selector: Named,
    /// The rule, where one applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Named>,
}
