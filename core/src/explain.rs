//! What a request comes to, and why: which plugin, selector and rule apply, each condition's outcome,
//! what the request becomes, and which upstreams may be chosen.
//!
//! The plugins are gone through in the order and by the functions that serve requests: the choice is
//! [`chain`](crate::chain)'s, with the lists asked by [`Look`](crate::matcher::Look), which leaves match
//! caches alone; what a plugin would do is told by its twin,
//! [`Plugin::explain`](crate::chain::Plugin::explain). Nothing outside a context that is made for the
//! purpose changes, and nothing is sent.
//!
//! A list may hold a million entries. What is told of it are the candidates that its index leaves, at
//! most [`MAX_CANDIDATES`] of them, and numbers of the rest. [`Expect`] asks for a certain entry, also
//! for one that the index has ruled out.

mod answer;
mod curl;
mod expect;
mod input;
mod lists;
mod sent;
mod walk;
mod words;

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use tokio::runtime::Handle;

pub use answer::{
    Asked, Candidate, Ending, Entry, Expected, Explanation, Header, Instead, Kind, Looked, Named,
    Outcome, Sent, State, Step, Way,
};
pub use curl::parse as parse_curl;
pub use input::{RequestFault, read};

use crate::chain::{DriverOptions, Edge, Inbound};
use crate::layer::{Admission, Admitted, Framing, PathRules};
use crate::snapshot::{Publisher, Snapshot};
use expect::Wanted;

/// The most selectors, and rules, of one plugin that are told one by one.
pub const MAX_CANDIDATES: usize = 100;

/// The most ways that are told where chance has a say.
pub const MAX_WAYS: usize = 16;

/// A request to be explained.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The target in the form that a server gets: path and query.
    pub uri: Uri,
    /// The headers, `Host` among them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The address that the connection comes from.
    pub peer: IpAddr,
    /// The entry that is expected to take it.
    pub expect: Option<Expect>,
    /// What of the question has no influence, and what was assumed.
    pub remarks: Vec<String>,
}

/// A selector or rule that is expected to take a request, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// A selector.
    Selector(String),
    /// A rule; with the id of its selector it is found faster.
    Rule {
        /// Its id.
        id: String,
        /// The id of its selector.
        selector: Option<String>,
    },
}

/// How requests are served where this one would be.
#[derive(Debug)]
pub struct Options {
    /// How requests are driven.
    pub driver: DriverOptions,
    /// The front of the gateway. Nobody watches from there: it has no observer.
    pub edge: Arc<Edge>,
    /// What stands before the plugins, in its order.
    pub before: Vec<Stage>,
    /// The wall clock in epoch milliseconds.
    pub clock: fn() -> i64,
    /// A runtime, for the context of the request; nothing is spawned on it.
    pub runtime: Handle,
}

impl Options {
    /// A gateway with default settings, and the rules before the plugins that every gateway has.
    #[must_use]
    pub fn new(clock: fn() -> i64, runtime: Handle) -> Self {
        Self {
            driver: DriverOptions::default(),
            edge: Arc::default(),
            before: vec![Stage::new("framing", Framing), Stage::new("pathRules", PathRules)],
            clock,
            runtime,
        }
    }
}

type Admit = Box<dyn Fn(&mut http::Request<Inbound>) -> Admitted + Send + Sync>;

/// Something before the plugins that may answer or refuse.
pub struct Stage {
    name: &'static str,
    admit: Admit,
}

impl Stage {
    /// A stage of this name. What it does must change nothing but the request.
    pub fn new(name: &'static str, admission: impl Admission + Send + Sync + 'static) -> Self {
        Self { name, admit: Box::new(move |request| admission.admit(request)) }
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stage").field(&self.name).finish()
    }
}

/// What is asked, of which configuration.
struct Asking<'a> {
    publisher: &'a Publisher,
    snapshot: Arc<Snapshot>,
    options: &'a Options,
    request: &'a Request,
    wanted: Option<Wanted>,
    now_ms: i64,
    began: Instant,
}

/// Explains a request against the configuration that a publisher has put in force: a gateway's own, or
/// one that an admin has compiled for the purpose.
///
/// Takes as long as the request's match would, and some microseconds for each candidate told.
///
/// # Errors
/// The entry that is expected does not exist.
pub fn explain(
    publisher: &Publisher,
    options: &Options,
    request: &Request,
) -> Result<Explanation, RequestFault> {
    let began = Instant::now();
    let wanted = request.expect.as_ref().map(|expect| Wanted::find(publisher.state(), expect));
    let asking = Asking {
        publisher,
        snapshot: publisher.snapshot(),
        options,
        request,
        wanted: wanted.transpose()?,
        now_ms: (options.clock)(),
        began,
    };
    let first = walk::walk(&asking, Vec::new());
    let mut open: VecDeque<Vec<bool>> = first.turns(0).into();
    let mut ways = Vec::new();
    while let Some(given) = open.pop_front().filter(|_| ways.len() + 1 < MAX_WAYS) {
        let decided = given.len();
        let walked = walk::walk(&asking, given);
        open.extend(walked.turns(decided));
        ways.push(walked.way);
    }
    let elapsed = began.elapsed().as_micros();
    Ok(Explanation {
        version: asking.snapshot.position.version,
        elapsed_us: u64::try_from(elapsed).unwrap_or(u64::MAX),
        protocol: first.protocol,
        client_ip: first.client_ip,
        way: first.way,
        ways,
        expected: first.expected,
        remarks: request.remarks.clone(),
    })
}
