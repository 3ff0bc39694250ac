//! Sending recorded calls to an admin of ours and comparing what comes back.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use crate::{
    compare::{Bindings, Order, same_message},
    golden::Recording,
    support::{Answer, TestAdmin},
};

/// What is not there yet. The list only gets shorter.
#[derive(Debug)]
pub(crate) struct NotYet {
    pub(crate) calls: Calls,
    pub(crate) why: &'static str,
}

/// Which calls an entry is about.
#[derive(Debug)]
pub(crate) enum Calls {
    /// All of an endpoint: method and path, `*` for one segment.
    To(&'static str, &'static str),
    /// Those with these ids, because they build on a call that is not there yet.
    Named(&'static [&'static str]),
}

/// A call that we answer differently on purpose.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) seq: u32,
    /// Where the specification says so.
    pub(crate) place: &'static str,
    pub(crate) why: &'static str,
    /// Makes the body that we answer of the recorded one.
    pub(crate) ours: fn(Value) -> Value,
}

/// How one call went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Equal,
    OnPurpose,
    NotYet,
    Differs(String),
}

/// One run over all recordings.
pub(crate) struct Replay<'a> {
    pub(crate) admin: &'a TestAdmin,
    pub(crate) bindings: Bindings,
    tokens: BTreeMap<String, String>,
    not_yet: &'a [NotYet],
    differences: &'a [Difference],
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        admin: &'a TestAdmin,
        not_yet: &'a [NotYet],
        differences: &'a [Difference],
    ) -> Self {
        let (bindings, tokens) = (Bindings::default(), BTreeMap::new());
        Self { admin, bindings, tokens, not_yet, differences }
    }

    /// Sends one call and says how it went.
    pub(crate) async fn step(&mut self, recording: &Recording) -> Outcome {
        let not_yet = self.not_yet.iter().any(|entry| entry.covers(recording));
        let outcome = match self.send(recording).await {
            Err(unbound) => Err(format!("the request needs {unbound}, which nothing has bound")),
            Ok(answer) => {
                self.remember_token(recording, &answer);
                self.compare(recording, &answer).map(|()| Outcome::Equal).or_else(|fault| {
                    // Tried second: some differ only because of calls that are not recorded here.
                    let difference = self.differences.iter().find(|one| one.seq == recording.seq);
                    let ours = difference.ok_or(fault)?.ours;
                    let body = recording.body.clone().map(ours);
                    let recording = Recording { body, ..recording.clone() };
                    self.compare(&recording, &answer).map(|()| Outcome::OnPurpose)
                })
            }
        };
        match outcome {
            Ok(outcome) if not_yet => Outcome::Differs(format!(
                "is {outcome:?} but on the list of what is not there yet: take it off"
            )),
            Ok(outcome) => outcome,
            Err(_) if not_yet => Outcome::NotYet,
            Err(fault) => Outcome::Differs(fault),
        }
    }

    async fn send(&self, recording: &Recording) -> Result<Answer, String> {
        let request = &recording.request;
        let path = self.bindings.fill(&request.path)?;
        let body = request.body.as_deref().map(|body| self.bindings.fill(body)).transpose()?;
        let mut headers: Vec<(String, String)> =
            request.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(content_type) = &request.content_type {
            headers.push(("Content-Type".to_owned(), content_type.clone()));
        }
        match request.token.as_deref() {
            Some("none") => {}
            Some(token) => headers.push(("X-Access-Token".to_owned(), token.to_owned())),
            None => {
                let user = if recording.id.starts_with("lina-") { "lina" } else { "admin" };
                if let Some(token) = self.tokens.get(user) {
                    headers.push(("X-Access-Token".to_owned(), token.clone()));
                }
            }
        }
        Ok(self.admin.call(&request.method, &path, &headers, body).await)
    }

    /// The token of a log-in without a client id is what later calls use.
    fn remember_token(&mut self, recording: &Recording, answer: &Answer) {
        let path = &recording.request.path;
        if !path.starts_with("/platform/login?") || path.contains("clientId=") {
            return;
        }
        let data = answer.json.as_ref().map(|json| &json["data"]);
        if let Some((name, token)) =
            data.and_then(|data| Some((data["userName"].as_str()?, data["token"].as_str()?)))
        {
            self.tokens.insert(name.to_owned(), token.to_owned());
        }
    }

    fn compare(&mut self, recording: &Recording, answer: &Answer) -> Result<(), String> {
        if recording.status != answer.status {
            return Err(format!(
                "status: wanted {}, got {} {}",
                recording.status, answer.status, answer.text
            ));
        }
        for (name, wanted) in &recording.headers {
            let got = answer.headers.get(name).and_then(|value| value.to_str().ok());
            if got.is_none_or(|got| !same_header(name, wanted, got)) {
                return Err(format!("header {name}: wanted {wanted}, got {got:?}"));
            }
        }
        if let Some(text) = &recording.text {
            return if *text == answer.text {
                Ok(())
            } else {
                Err(format!("text: wanted {text}, got {}", answer.text))
            };
        }
        let (Some(wanted), Some(got)) = (&recording.body, &answer.json) else {
            return Err(format!("wanted {:?}, got {}", recording.body, answer.text));
        };
        let mut wanted = wanted.clone();
        let messages = (wanted["message"].as_str(), got["message"].as_str());
        if let (Some(wanted_text), Some(got_text)) = messages
            && same_message(wanted_text, got_text)
        {
            wanted["message"] = got["message"].clone();
        }
        // A comparison that fails half-way must not leave half of its bindings behind.
        let mut trial = self.bindings.clone();
        trial.value(&wanted, got, order_of(&recording.request.path), "")?;
        self.bindings = trial;
        Ok(())
    }
}

impl NotYet {
    fn covers(&self, recording: &Recording) -> bool {
        match self.calls {
            Calls::Named(ids) => ids.contains(&recording.id.as_str()),
            Calls::To(method, pattern) => {
                let path = recording.request.path.split('?').next().unwrap_or_default();
                method == recording.request.method
                    && pattern.split('/').count() == path.split('/').count()
                    && pattern
                        .split('/')
                        .zip(path.split('/'))
                        .all(|(pattern, segment)| pattern == "*" || pattern == segment)
            }
        }
    }

    /// The calls, for the page in `docs`.
    pub(crate) fn describe(&self) -> String {
        match self.calls {
            Calls::Named(ids) => ids.join(", "),
            Calls::To(method, path) => format!("{method} `{path}`"),
        }
    }
}

/// Lists that the reference sorts; the order of all others means nothing.
fn order_of(path: &str) -> Order {
    const SORTED: [&str; 5] = [
        "/namespace-plugin?",
        "/plugin-template?",
        "/discovery/typeEnums",
        "/namespace/",
        "/platform/",
    ];
    if SORTED.iter().any(|prefix| path.starts_with(prefix)) {
        return Order::Counts;
    }
    Order::MeansNothing
}

/// Spelling of media types differs without meaning.
fn same_header(name: &str, wanted: &str, got: &str) -> bool {
    if !name.eq_ignore_ascii_case("content-type") {
        return wanted == got;
    }
    let plain = |text: &str| text.replace(' ', "").to_ascii_lowercase();
    plain(wanted) == plain(got)
}

/// Counts of one file.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    recorded: u32,
    equal: u32,
    on_purpose: u32,
    not_yet: u32,
    differing: u32,
}

/// The result of a run, for people and for the page in `docs`.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    files: BTreeMap<String, Counts>,
    pub(crate) faults: Vec<String>,
}

impl Summary {
    pub(crate) fn add(&mut self, recording: &Recording, outcome: &Outcome) {
        let counts = self.files.entry(recording.file.clone()).or_default();
        counts.recorded += 1;
        match outcome {
            Outcome::Equal => counts.equal += 1,
            Outcome::OnPurpose => counts.on_purpose += 1,
            Outcome::NotYet => counts.not_yet += 1,
            Outcome::Differs(fault) => {
                counts.differing += 1;
                self.faults.push(format!("{} {}: {fault}", recording.seq, recording.id));
            }
        }
    }

    /// The counts as a Markdown table.
    pub(crate) fn table(&self) -> String {
        let mut text = "| file | recorded | equal | differing on purpose | not yet | differing |\n\
                        |---|---|---|---|---|---|\n"
            .to_owned();
        let mut total = Counts::default();
        let mut row = |name: &str, counts: &Counts| {
            let Counts { recorded, equal, on_purpose, not_yet, differing } = counts;
            writeln!(
                text,
                "| {name} | {recorded} | {equal} | {on_purpose} | {not_yet} | {differing} |"
            )
            .unwrap();
        };
        for (name, counts) in &self.files {
            row(name, counts);
            total.recorded += counts.recorded;
            total.equal += counts.equal;
            total.on_purpose += counts.on_purpose;
            total.not_yet += counts.not_yet;
            total.differing += counts.differing;
        }
        row("all", &total);
        text
    }
}
