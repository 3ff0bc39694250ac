//! One way through what stands before the plugins, the plugins, and to the upstream.

use std::sync::Arc;

use http::{Response, Version};

use super::answer::{Ending, Expected, Outcome, State, Step, Way};
use super::{Asking, expect, lists, sent};
use crate::body::Body;
use crate::chain::{
    self, Balanced, Connection, Decisions, Flow, Found, Inbound, Notes, RequestContext, View,
};
use crate::condition::canonical;
use crate::error::{GatewayError, is_grpc};
use crate::layer::Admitted;
use crate::matcher::Look;
use crate::snapshot::PluginPart;

/// What came of one way.
pub(super) struct Walked {
    pub(super) way: Way,
    pub(super) protocol: String,
    pub(super) client_ip: String,
    pub(super) expected: Option<Expected>,
    decisions: Decisions,
}

impl Walked {
    /// The ways that part from this one at a decision that was not given: those after the first
    /// `given`.
    pub(super) fn turns(&self, given: usize) -> Vec<Vec<bool>> {
        let taken = self.decisions.taken();
        let turn = |at: usize| {
            let mut turned: Vec<bool> = taken[..=at].iter().map(|decision| decision.yes).collect();
            turned[at] = !turned[at];
            turned
        };
        (given..taken.len()).map(turn).collect()
    }
}

struct Walk<'a> {
    asking: &'a Asking<'a>,
    steps: Vec<Step>,
    decisions: Decisions,
    outcome: Option<Outcome>,
    /// The upstreams that the last proxy plugin chooses from, and their selector.
    balanced: Option<(Arc<str>, Balanced)>,
    expected: Option<Expected>,
}

/// Goes the way that begins with the given decisions of chance.
pub(super) fn walk(asking: &Asking<'_>, given: Vec<bool>) -> Walked {
    let mut walk = Walk {
        asking,
        steps: Vec::new(),
        decisions: Decisions::given(given),
        outcome: None,
        balanced: None,
        expected: None,
    };
    let mut cx = walk.arrive();
    let raw_form = canonical(cx.raw_path());
    for place in lists::places(asking) {
        match place {
            lists::Place::Idle(step) => walk.idle(*step),
            lists::Place::Part(part) => walk.part(&mut cx, part, raw_form.as_deref()),
        }
    }
    let request = if walk.outcome.is_some() { None } else { walk.send(&mut cx) };
    let upstreams = walk.balanced.take().map(|(selector, balanced)| {
        sent::upstreams(asking.publisher.state(), &selector, &balanced)
    });
    let taken = walk.decisions.taken();
    let chance = taken.iter().map(|decision| decision.percent / 100.0).product::<f64>() * 100.0;
    Walked {
        way: Way {
            chance: (!taken.is_empty()).then(|| sent::rounded(chance)),
            decided: taken.iter().map(|decision| decision.what.clone()).collect(),
            outcome: walk.outcome.unwrap_or_else(|| outcome(Ending::Forwarded, "")),
            steps: walk.steps,
            request,
            upstreams: upstreams.unwrap_or_default(),
        },
        protocol: cx.rpc_type.name().to_owned(),
        client_ip: cx.client_text().to_owned(),
        expected: walk.expected,
        decisions: walk.decisions,
    }
}

impl Walk<'_> {
    /// Everything before the plugins.
    fn arrive(&mut self) -> RequestContext {
        let Asking { options, request, began, .. } = self.asking;
        let peer = std::net::SocketAddr::new(request.peer, 0);
        let connection = Arc::new(Connection::new(peer, peer, Arc::clone(&options.edge)));
        let mut inbound = Inbound::new(Body::from(request.body.clone()), connection, *began);
        if options.edge.id_upstream {
            inbound.request_id = Some(chain::request_id(&request.headers));
        }
        let mut arrived = http::Request::new(inbound);
        *arrived.method_mut() = request.method.clone();
        *arrived.uri_mut() = request.uri.clone();
        *arrived.version_mut() = Version::HTTP_11;
        *arrived.headers_mut() = request.headers.clone();
        for stage in &options.before {
            let outcome = match (stage.admit)(&mut arrived) {
                Admitted::Pass => continue,
                Admitted::Answer(response) => answered(&response),
                Admitted::Refuse(error) => self.refused(&error),
            };
            self.edge(stage.name, outcome);
            break;
        }
        let (head, inbound) = arrived.into_parts();
        let (now, runtime) = (self.asking.now_ms, options.runtime.clone());
        let mut cx = RequestContext::new(head, inbound, now, runtime);
        cx.response_timeout = options.driver.calls.response_timeout;
        let protocol = chain::protocol(&mut cx, &self.asking.snapshot, &options.driver);
        if let (None, Err(error)) = (&self.outcome, protocol) {
            let outcome = self.refused(&error);
            self.edge("protocol", outcome);
        }
        chain::keep_end_to_end(&mut cx);
        cx
    }

    /// Something before the plugins ends the request.
    fn edge(&mut self, name: &str, outcome: Outcome) {
        let mut step = lists::bare(name, -1, State::Edge, outcome.text.clone());
        step.ends = true;
        self.steps.push(step);
        self.outcome = Some(outcome);
    }

    fn idle(&mut self, step: Step) {
        if let Some(wanted) = &self.asking.wanted
            && wanted.plugin == step.plugin
        {
            self.expected = Some(expect::out_of_play(self.asking, wanted, &step.effect));
        }
        self.steps.push(step);
    }

    fn part(&mut self, cx: &mut RequestContext, part: &PluginPart, raw_form: Option<&str>) {
        if self.outcome.is_some() {
            let last = self.steps.iter().rfind(|step| step.ends);
            let at = last.map(|step| step.plugin.as_str()).unwrap_or_default();
            let text = format!("the request ends before, at {at}");
            self.idle(lists::bare(&part.name, part.sort, State::NotReached, text));
            return;
        }
        self.one(cx, part, None);
        if self.outcome.is_none()
            && let Some(path) = chain::other_form(cx, part, raw_form)
        {
            self.one(cx, part, Some(&path));
        }
    }

    /// One plugin, for the path as it is or for another form of it.
    fn one(&mut self, cx: &mut RequestContext, part: &PluginPart, path: Option<&str>) {
        let (found, mut step) = {
            let view = match path {
                None => View::new(cx),
                Some(path) => View::canonical(cx, path),
            };
            let found = chain::find(cx, part, &view, &Look);
            let step = lists::step(self.asking, part, &view, &found, cx.rpc_type.name());
            if let Some(wanted) = self.asking.wanted.as_ref().filter(|w| *w.plugin == *part.name) {
                let judged = expect::judge(self.asking, wanted, part, &view, &found);
                // A guard is asked twice: either of both counts.
                if judged.taken || self.expected.is_none() {
                    self.expected = Some(judged);
                }
            }
            (found, step)
        };
        step.canonical = path.is_some();
        let mut notes = Notes::on_the_way(std::mem::take(&mut self.decisions));
        let result = match (&part.run, &found) {
            (_, Found::Unavailable) => Err(chain::unavailable(part)),
            (None, _) | (_, Found::Nothing) => Ok(Flow::Continue),
            (Some(plugin), Found::NoSelector) => plugin.no_selector(cx),
            (Some(plugin), Found::NoRule(_)) => plugin.no_rule(cx),
            (Some(plugin), Found::Hit(_, hit)) => plugin.explain(*hit, cx, &mut notes),
        };
        let (mut effects, external, balanced, decisions) = notes.into_parts();
        self.decisions = decisions;
        if let (Some(balanced), Found::Hit(selector, _)) = (balanced, &found) {
            self.balanced = Some((Arc::clone(&selector.head.id), balanced));
        }
        let ended = match &result {
            Ok(Flow::Continue) => None,
            Ok(Flow::Respond(response)) => Some(answered(response)),
            Err(error) => Some(self.refused(error)),
        };
        effects.extend(ended.as_ref().map(|outcome| match outcome.ending {
            Ending::Refused => format!("refuses the request: {}", outcome.text),
            Ending::Answered | Ending::Forwarded => outcome.text.clone(),
        }));
        if !effects.is_empty() {
            step.effect = effects.join("; ");
        }
        step.external = external;
        step.ends = ended.is_some();
        self.outcome = ended;
        self.steps.push(step);
    }

    /// The request as the upstream would get it.
    fn send(&mut self, cx: &mut RequestContext) -> Option<super::Sent> {
        match chain::as_sent(cx) {
            Ok(head) => {
                let target = cx.target.as_ref()?;
                let balanced = self.balanced.as_ref().map(|(_, balanced)| balanced);
                let sent = sent::request(self.asking, &head, target, balanced);
                let text = format!("goes to {}", target.endpoint);
                self.outcome = Some(outcome(Ending::Forwarded, &text));
                Some(sent)
            }
            Err(error) => {
                self.outcome = Some(self.refused(&error));
                None
            }
        }
    }

    fn refused(&self, error: &GatewayError) -> Outcome {
        let Asking { request, options, .. } = self.asking;
        let mode = options.driver.error_status;
        let (status, code) = if is_grpc(&request.method, &request.headers) {
            let response = error.to_grpc_response();
            let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
            (response.status(), code.and_then(|code| code.parse().ok()))
        } else {
            (error.status(mode), error.code(mode))
        };
        let message = error.message(mode);
        let text = match error.log_detail() {
            None => message.to_owned(),
            Some(detail) => format!("{message} ({detail})"),
        };
        let (status, reason) = (Some(status.as_u16()), Some(error.reason().code()));
        Outcome { ending: Ending::Refused, status, code, reason, text }
    }
}

fn answered(response: &Response<Body>) -> Outcome {
    let status = response.status().as_u16();
    let text = format!("answers {status} without asking an upstream");
    Outcome { status: Some(status), ..outcome(Ending::Answered, &text) }
}

fn outcome(ending: Ending, text: &str) -> Outcome {
    Outcome { ending, status: None, code: None, reason: None, text: text.to_owned() }
}
