//! Tables of rules to measure with, and requests for them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderName;
use jiff::Timestamp;
use longmen_core::chain::{
    CatalogueEntry, Flow, HandleFault, HitRef, Hook, HookResult, Notes, Plugin, Registry,
    RequestContext, RuleParts,
};
use longmen_core::condition::{ContextField, RequestView};
use longmen_core::model::{self, Condition, PluginClass, Rule, Selector};
use longmen_core::snapshot::{Position, Publisher, PublisherOptions, Selected, SnapshotStore};
use longmen_core::sync::{Event, Frame, Payload};

/// What the rules look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `=`.
    Static,
    /// `startsWith`.
    Begins,
    /// Ant patterns with a `**` at the end.
    Prefix,
    /// Ant patterns with a variable before the text that differs.
    Variable,
    /// `pathPattern`.
    PathPattern,
    /// One path for all, and a header that differs.
    Header,
    /// A different text somewhere in the path, by a regular expression without a beginning.
    Regex,
    /// One after the other of all but the last.
    Mixed,
}

/// How the rules are spread over selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One selector has them all.
    OneSelector,
    /// 1,000 selectors by path.
    ManySelectors,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] = [
        Self::Static,
        Self::Begins,
        Self::Prefix,
        Self::Variable,
        Self::PathPattern,
        Self::Header,
        Self::Regex,
        Self::Mixed,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Begins => "startsWith",
            Self::Prefix => "prefix",
            Self::Variable => "variable",
            Self::PathPattern => "pathPattern",
            Self::Header => "header",
            Self::Regex => "regex",
            Self::Mixed => "mixed",
        }
    }

    pub(crate) fn is_regex(self) -> bool {
        self == Self::Regex
    }

    fn of(self, number: usize) -> Self {
        if self == Self::Mixed { Self::ALL[number % 6] } else { self }
    }
}

impl Layout {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OneSelector => "1 selector",
            Self::ManySelectors => "1,000 selectors",
        }
    }

    const fn selectors(self) -> usize {
        match self {
            Self::OneSelector => 1,
            Self::ManySelectors => 1_000,
        }
    }
}

fn condition(param_type: &str, operator: &str, name: &str, value: &str) -> Condition {
    Condition {
        param_type: param_type.to_owned(),
        operator: operator.to_owned(),
        param_name: Some(name.to_owned()),
        param_value: Some(value.to_owned()),
    }
}

/// The first segment of a selector's paths.
fn module(layout: Layout, number: usize) -> String {
    format!("/m{}", number % layout.selectors())
}

fn conditions(kind: Kind, layout: Layout, number: usize) -> Vec<Condition> {
    let module = module(layout, number);
    let uri = |operator: &str, value: String| vec![condition("uri", operator, "/", &value)];
    match kind.of(number) {
        Kind::Static => uri("=", format!("{module}/items/i{number}/view")),
        Kind::Begins => uri("startsWith", format!("{module}/b{number}x")),
        Kind::Prefix => uri("match", format!("{module}/p{number}/**")),
        Kind::Variable => uri("match", format!("{module}/users/{{name}}/v{number}")),
        Kind::PathPattern => uri("pathPattern", format!("{module}/q/{{id}}/w{number}")),
        Kind::Header => {
            let mut list = uri("match", format!("{module}/shared/**"));
            list.push(condition("header", "=", "x-key", &number.to_string()));
            list
        }
        Kind::Regex | Kind::Mixed => uri("regex", format!("/.*/r{number}[a-z]+")),
    }
}

/// The rule with that number.
pub(crate) fn rule(kind: Kind, layout: Layout, number: usize) -> Rule {
    Rule {
        plugin_name: "way".to_owned(),
        selector_id: format!("17000000000{:08}", number % layout.selectors()),
        handle: Some(r#"{"retry":3,"timeout":3000}"#.to_owned()),
        condition_list: Some(conditions(kind, layout, number)),
        id: format!("18000000000{number:08}"),
        name: Some(format!("rule {number}")),
        enabled: true,
        sort: Some(1),
        namespace_id: Some("649330b6-c2d7-4edc-be8e-8a54df9eb385".to_owned()),
        ..Rule::default()
    }
}

/// The same rule after an edit: switched to another path, or back.
pub(crate) fn edited(kind: Kind, layout: Layout, number: usize, step: usize) -> Rule {
    let mut rule = rule(kind, layout, number);
    for condition in rule.condition_list.iter_mut().flatten() {
        if let Some(value) = condition.param_value.as_mut().filter(|_| step.is_multiple_of(2)) {
            value.push_str("moved");
        }
    }
    rule.sort = Some(i32::try_from(step % 7).unwrap_or_default());
    rule
}

/// All objects.
pub(crate) fn frames(kind: Kind, layout: Layout, rules: usize) -> Vec<Frame> {
    let plugin = model::Plugin { name: "way".into(), enabled: true, ..Default::default() };
    let selector = |number: usize| Selector {
        id: format!("17000000000{number:08}"),
        plugin_name: "way".into(),
        selector_type: 1,
        enabled: true,
        continued: true,
        condition_list: Some(match kind {
            // Nothing of the path is known beforehand.
            Kind::Regex if layout == Layout::OneSelector => {
                vec![condition("uri", "startsWith", "/", "/")]
            }
            _ => vec![condition("uri", "match", "/", &format!("{}/**", module(layout, number)))],
        }),
        ..Selector::default()
    };
    let frame = |payload| Frame { event: Event::Refresh, payload, mark: None };
    vec![
        frame(Payload::Plugin(vec![plugin])),
        frame(Payload::Selector((0..layout.selectors()).map(selector).collect())),
        frame(Payload::Rule((0..rules).map(|number| rule(kind, layout, number)).collect())),
    ]
}

/// A request that the rule with that number takes.
pub(crate) fn request(kind: Kind, layout: Layout, number: usize) -> Request {
    let module = module(layout, number);
    let path = match kind.of(number) {
        Kind::Static => format!("{module}/items/i{number}/view"),
        Kind::Begins => format!("{module}/b{number}xyz/rest"),
        Kind::Prefix => format!("{module}/p{number}/some/more"),
        Kind::Variable => format!("{module}/users/somebody/v{number}"),
        Kind::PathPattern => format!("{module}/q/12345/w{number}"),
        Kind::Header => format!("{module}/shared/thing"),
        Kind::Regex | Kind::Mixed => format!("{module}/some/r{number}abc"),
    };
    Request { path, key: number.to_string() }
}

/// A request that no rule takes.
pub(crate) fn unknown(kind: Kind, layout: Layout) -> Request {
    let mut request = request(kind, layout, 0);
    request.path.push_str("/unknown");
    request.path = request.path.replace("/p0/", "/px/").replace("/b0xyz/", "/bx/");
    request.key = "none".to_owned();
    request
}

/// Rules by expressions in which no text stands that could be looked for.
pub(crate) fn coreless(rules: usize) -> Vec<Frame> {
    let mut frames = frames(Kind::Regex, Layout::OneSelector, rules);
    for frame in &mut frames {
        let Payload::Rule(rules) = &mut frame.payload else { continue };
        for (number, rule) in rules.iter_mut().enumerate() {
            let digits: String =
                format!("{number:03}").chars().map(|digit| format!("[{digit}]")).collect();
            rule.condition_list =
                Some(vec![condition("uri", "regex", "/", &format!("/.*x{digits}y"))]);
        }
    }
    frames
}

/// A request that the rule with that number takes.
pub(crate) fn coreless_request(number: usize) -> Request {
    path(format!("/m0/some/x{number:03}y"))
}

/// A request for a path.
pub(crate) fn path(path: String) -> Request {
    Request { path, key: String::new() }
}

/// A path and a header.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    key: String,
}

impl RequestView for Request {
    fn effective_path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &HeaderName) -> Option<Cow<'_, str>> {
        (name == "x-key").then_some(Cow::Borrowed(&self.key))
    }

    fn query(&self, _name: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn cookie(&self, _name: &str) -> Option<Cow<'_, str>> {
        None
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn domain(&self) -> &str {
        "gw.test"
    }

    fn client_ip(&self) -> &str {
        "127.0.0.1"
    }

    fn client_host(&self) -> &str {
        "127.0.0.1"
    }

    fn context_field(&self, _field: ContextField) -> Option<Cow<'_, str>> {
        None
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A published table.
#[derive(Debug)]
pub(crate) struct Table {
    publisher: Publisher,
    store: Arc<SnapshotStore>,
}

impl Table {
    /// Puts all objects in force.
    pub(crate) fn publish(frames: &[Frame]) -> Self {
        Self::publish_with(frames, PublisherOptions::default())
    }

    /// The same with these options.
    pub(crate) fn publish_with(frames: &[Frame], options: PublisherOptions) -> Self {
        let store = Arc::new(SnapshotStore::new());
        let registry = Registry::default().with(Idle);
        let mut publisher = Publisher::new(Arc::clone(&store), registry, options);
        let published = publisher.replace(frames, Position::default(), |_, _| {});
        assert!(published.faults.is_empty(), "{:?}", published.faults.first());
        Self { publisher, store }
    }

    /// Publishes an edit and says how long that took.
    pub(crate) fn edit(&mut self, frames: &[Frame]) -> Duration {
        let started = Instant::now();
        self.publisher.apply(frames, Position::default());
        started.elapsed()
    }

    /// Whether a rule takes the request.
    pub(crate) fn choose(&self, request: &Request) -> bool {
        let snapshot = self.store.load();
        matches!(snapshot.plugins[0].select(request), Selected::Rule(..))
    }
}

/// A plugin that does nothing.
#[derive(Debug)]
struct Idle;

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "way",
    order: 200,
    response_order: 200,
    role: "Test",
    class: PluginClass::Proxy,
    label: "way",
    fields: &[],
};

impl Plugin for Idle {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, _handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        Ok(RuleParts::default())
    }

    fn request_head<'a>(
        &'a self,
        _hit: HitRef<'a>,
        _cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        Hook::Ready(Ok(Flow::Continue))
    }

    fn explain(&self, _: HitRef<'_>, _: &mut RequestContext, _: &mut Notes) -> HookResult {
        Ok(Flow::Continue)
    }
}
