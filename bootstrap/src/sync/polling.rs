//! Polling: whole groups fetched over HTTP, and questions that an admin holds until something changes.
//!
//! One link per configured url. A link logs in, asks what differs from what the gateway has, fetches
//! that and puts it in force in one step. With our own admins one link at a time asks and the others
//! wait to take over, since all of them tell the same; stock admins are all asked, because each tells
//! at once only what was changed on itself. Which kind an admin is, its answers tell.
//!
//! A group that was fetched is all there is of it; groups that were not stay as they are.
//!
//! Source: ShenYu 2.7.1, HTTP long polling; what it does wrong there is right here.

mod aes;
mod answer;
mod client;
mod known;
mod link;
mod talk;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use longmen_core::lifecycle::Lifecycle;
use longmen_core::upstream::TlsConnector;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Applier, Identity};
use known::Known;
use link::Link;

/// What polling is made of.
#[derive(Clone)]
pub(crate) struct PollOptions {
    pub(crate) urls: Vec<String>,
    /// Who logs in; `None`: nobody, the token is shown.
    pub(crate) login: Option<Login>,
    /// The token that our admin takes in place of a log-in.
    pub(crate) token: Option<String>,
    pub(crate) namespace: String,
    /// What this process calls itself, so that an admin tells it from its predecessor.
    pub(crate) identity: Arc<Identity>,
    /// The port the gateway serves on.
    pub(crate) port: u16,
    pub(crate) connect_timeout: Duration,
    /// How long the answer to a question may take.
    pub(crate) read_timeout: Duration,
    /// The longest wait between two attempts.
    pub(crate) reconnect_interval: Duration,
    /// The largest answer taken, in bytes.
    pub(crate) max_body_bytes: usize,
    /// For addresses with `https`.
    pub(crate) tls: TlsConnector,
    /// Links that are in touch with an admin, counted for the metrics.
    pub(crate) sessions: Arc<AtomicUsize>,
}

/// Who logs in, and how.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) username: String,
    pub(crate) password: String,
    /// Key and initial vector by which the password is encrypted on its way.
    pub(crate) aes: Option<(String, String)>,
}

/// Checks key and initial vector.
///
/// # Errors
/// Which has a length that cannot be.
pub(crate) fn check_aes(key: &str, iv: &str) -> Result<(), String> {
    aes::encrypted("", key, iv).map(|_| ())
}

/// Starts all links on the control runtime. They go on until `served` is set, so that a gateway that
/// comes to its end answers its last request by what is configured then.
pub(crate) fn start(
    options: PollOptions,
    applier: &Applier,
    runtime: &Handle,
    lifecycle: &Lifecycle,
    served: &CancellationToken,
) {
    let options = Arc::new(options);
    // One admin of ours is asked at a time, whatever the number of links.
    let turn = Arc::new(Semaphore::new(1));
    let known = Arc::new(Known::new(applier.clone(), options.namespace.clone()));
    for number in 0..options.urls.len() {
        let link = Link::new(number, Arc::clone(&options), Arc::clone(&known), Arc::clone(&turn));
        let served = served.clone();
        lifecycle.spawn(runtime, "polling link", async move {
            tokio::select! {
                () = link.run() => {}
                () = served.cancelled() => {}
            }
        });
    }
}
