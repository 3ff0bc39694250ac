//! What was recorded beside what came now, check by check.

use std::collections::BTreeMap;
use std::fmt;

use longmen_benchmark::raw::{Answer, Received, head_lines, header_values};
use serde_json::Value;

use super::record::{Exchange, Seen};

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    Status,
    Header(String),
    Body,
    Interim,
    Closed,
    /// How many requests reached upstreams.
    Requests,
    /// Which upstream got the request.
    Upstream,
    /// Whether the request came on a connection used before.
    Connection,
    Line,
    UpstreamHeader(String),
    UpstreamBody,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("status"),
            Self::Header(name) => write!(f, "header {name}"),
            Self::Body => f.write_str("body"),
            Self::Interim => f.write_str("interim answers"),
            Self::Closed => f.write_str("connection closed"),
            Self::Requests => f.write_str("requests to upstreams"),
            Self::Upstream => f.write_str("chosen upstream"),
            Self::Connection => f.write_str("connection to the upstream"),
            Self::Line => f.write_str("request line to the upstream"),
            Self::UpstreamHeader(name) => write!(f, "header {name} to the upstream"),
            Self::UpstreamBody => f.write_str("body to the upstream"),
        }
    }
}

/// One check with two outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    pub(crate) check: Check,
    pub(crate) recorded: String,
    pub(crate) ours: String,
}

/// What came of an exchange here.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) answer: Answer,
    /// `None` where it was not looked at.
    pub(crate) closed: Option<bool>,
    /// Whom each request reached, and the request.
    pub(crate) upstream: Vec<(String, Received)>,
    /// All bytes, where several answers came in one go.
    pub(crate) raw: Option<Vec<u8>>,
}

/// Collects differences.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) checks: usize,
    pub(crate) differences: Vec<Difference>,
}

impl Comparison {
    fn check(&mut self, check: Check, recorded: &[u8], ours: &[u8]) {
        self.outcome(check, recorded == ours, recorded, ours);
    }

    fn outcome(&mut self, check: Check, same: bool, recorded: &[u8], ours: &[u8]) {
        self.checks += 1;
        if !same {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.differences.push(Difference { check, recorded: text(recorded), ours: text(ours) });
        }
    }
}

/// Compares one exchange; the recorded texts have the addresses of here.
///
/// `connections` is kept over the exchanges of a case, where connections matter.
pub(crate) fn compare(
    recorded: &Exchange,
    ours: &Ours,
    mut connections: Option<&mut Connections>,
    choice: Choice,
) -> Comparison {
    let mut found = Comparison::default();
    client_side(recorded, ours, choice, &mut found);
    let (there, here) = (recorded.upstream.len(), ours.upstream.len());
    found.check(Check::Requests, there.to_string().as_bytes(), here.to_string().as_bytes());
    for (there, (name, here)) in recorded.upstream.iter().zip(&ours.upstream) {
        if choice == Choice::Compared {
            found.check(Check::Upstream, there.upstream.as_bytes(), name.as_bytes());
        }
        if let Some(seen) = &mut connections {
            let (there, here) = seen.both(there.connection, here.connection);
            found.check(Check::Connection, there, here);
        }
        upstream_side(there, here, choice, &mut found);
    }
    found
}

/// Whether it matters which upstream was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Compared,
    /// Chosen by chance, or by its address, which is another one here.
    Free,
}

/// Connections used so far in a case.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    there: Vec<usize>,
    here: Vec<usize>,
}

impl Connections {
    fn both(&mut self, there: usize, here: usize) -> (&'static [u8], &'static [u8]) {
        let one = |known: &mut Vec<usize>, number| -> &'static [u8] {
            if known.contains(&number) {
                return b"used before";
            }
            known.push(number);
            b"new"
        };
        (one(&mut self.there, there), one(&mut self.here, here))
    }
}

fn client_side(recorded: &Exchange, ours: &Ours, choice: Choice, found: &mut Comparison) {
    let (got, answer) = (&recorded.got, &ours.answer);
    if let Some(raw) = &got.raw {
        found.check(
            Check::Body,
            &without_dates(raw),
            &without_dates(ours.raw.as_deref().unwrap_or_default()),
        );
        return;
    }
    let status = |status: u16| status.to_string().into_bytes();
    found.check(Check::Status, &status(got.status), &status(answer.status()));
    found.check(Check::Interim, &got.interim, &answer.interim);
    headers(&got.head, &answer.head, Check::Header, found);
    if choice == Choice::Compared {
        found.outcome(Check::Body, same_body(&got.body, &answer.body), &got.body, &answer.body);
    }
    if let (Some(there), Some(here)) = (got.closed, ours.closed) {
        found.check(Check::Closed, there.to_string().as_bytes(), here.to_string().as_bytes());
    }
}

/// What the server says of the time is no part of an answer that could be compared.
fn without_dates(raw: &[u8]) -> Vec<u8> {
    let lines = raw.split_inclusive(|byte| *byte == b'\n');
    let mut kept: Vec<Vec<u8>> = lines
        .filter(|line| !line.to_ascii_lowercase().starts_with(b"date:"))
        .map(|line| match line.iter().position(|byte| *byte == b':') {
            Some(colon) if !line.starts_with(b"{") && !line.starts_with(b"HTTP") => {
                [line[..colon].to_ascii_lowercase().as_slice(), &line[colon..]].concat()
            }
            _ => line.to_vec(),
        })
        .collect();
    // Members of a list of headers have no order.
    let mut from = 0;
    for at in 0..kept.len() {
        if kept[at] == b"\r\n" || kept[at].starts_with(b"HTTP") {
            kept[from..at].sort();
            from = at + 1;
        }
    }
    kept.concat()
}

fn upstream_side(there: &Seen, here: &Received, choice: Choice, found: &mut Comparison) {
    let line = head_lines(&there.head).next().unwrap_or_default();
    match line.strip_suffix(b"(cut)") {
        Some(start) => {
            let ours = here.line().into_bytes();
            found.outcome(Check::Line, ours.starts_with(start), line, &ours);
        }
        None => found.check(Check::Line, line, here.line().as_bytes()),
    }
    let without_host = |head: &[u8]| {
        let lines: Vec<&[u8]> = head_lines(head)
            .filter(|line| !line.to_ascii_lowercase().starts_with(b"host:"))
            .collect();
        lines.join(&b"\r\n"[..])
    };
    match choice {
        Choice::Compared => headers(&there.head, &here.head, Check::UpstreamHeader, found),
        Choice::Free => {
            let (there, here) = (without_host(&there.head), without_host(&here.head));
            headers(&there, &here, Check::UpstreamHeader, found);
        }
    }
    if let Some(body) = &there.body {
        // Whether a chunk's size is written in small letters means nothing.
        let same = body.eq_ignore_ascii_case(&here.raw_body);
        found.outcome(Check::UpstreamBody, same, body, &here.raw_body);
    }
}

/// Compares headers: names without case, the values of one name in their order.
fn headers(there: &[u8], here: &[u8], check: fn(String) -> Check, found: &mut Comparison) {
    let cut = there.ends_with(b"(cut)");
    let (there, here) = (by_name(there), by_name(here));
    for (name, values) in &there {
        match (here.get(name), values.strip_suffix(b"(cut)")) {
            (Some(ours), Some(start)) => {
                found.outcome(check(name.clone()), ours.starts_with(start), values, ours);
            }
            (ours, _) => {
                let ours = ours.map_or(&b"(none)"[..], Vec::as_slice);
                found.outcome(check(name.clone()), same_value(name, values, ours), values, ours);
            }
        }
    }
    // What stood behind the cut is not known.
    for (name, values) in here.iter().filter(|(name, _)| !cut && !there.contains_key(*name)) {
        found.check(check(name.clone()), b"(none)", values);
    }
}

fn by_name(head: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, value) in header_values(head) {
        let values = all.entry(name).or_default();
        if !values.is_empty() {
            values.extend_from_slice(b" / ");
        }
        values.extend_from_slice(&value);
    }
    all
}

/// Lists of the CORS headers are sets; some values are names in any case.
fn same_value(name: &str, there: &[u8], here: &[u8]) -> bool {
    if matches!(name, "connection" | "transfer-encoding" | "upgrade") {
        return there.eq_ignore_ascii_case(here);
    }
    if name != "access-control-allow-headers" {
        return there == here;
    }
    let set = |value: &[u8]| {
        let mut members: Vec<Vec<u8>> =
            value.split(|byte| *byte == b',').map(|member| member.trim_ascii().to_vec()).collect();
        members.sort();
        members
    };
    set(there) == set(here)
}

fn same_body(there: &[u8], here: &[u8]) -> bool {
    if let Some(start) = there.strip_suffix(b"(cut)") {
        return here.starts_with(start);
    }
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    there == here || json(there).is_some_and(|there| Some(there) == json(here))
}
