//! Links: one per configured url, each asking its admin for as long as the gateway lives.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::sync::Group;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use super::super::link::{FIRST_WAIT, GOOD, Open, jittered};
use super::PollOptions;
use super::known::Known;
use super::talk::{Talk, TalkError};

/// An answer that nothing changed comes after the time that an admin holds a question. One that
/// comes sooner than this is followed by a pause.
const QUICK: Duration = Duration::from_secs(1);

/// The longest pause after answers that brought nothing.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// One link.
pub(super) struct Link {
    number: usize,
    options: Arc<PollOptions>,
    known: Arc<Known>,
    turn: Arc<Semaphore>,
}

/// How a round went.
struct Round {
    /// Whether the admin is one of ours.
    ours: bool,
    /// Whether it brought nothing, and that too soon.
    idle: bool,
}

impl Link {
    pub(super) const fn new(
        number: usize,
        options: Arc<PollOptions>,
        known: Arc<Known>,
        turn: Arc<Semaphore>,
    ) -> Self {
        Self { number, options, known, turn }
    }

    pub(super) async fn run(self) {
        let url = &self.options.urls[self.number];
        let mut talk = match Talk::new(url, &self.options) {
            Ok(talk) => talk,
            Err(error) => return warn!(url, "this admin is never asked: {error}"),
        };
        let (mut wait, mut complained) = (FIRST_WAIT, false);
        loop {
            let begun = Instant::now();
            let reason = match self.serve(&mut talk, complained).await {
                Ok(never) => match never {},
                Err(reason) => reason,
            };
            if begun.elapsed() >= GOOD {
                (wait, complained) = (FIRST_WAIT, false);
            }
            if complained {
                debug!(url, "no answer: {reason}");
            } else {
                warn!(url, "no answer: {reason}; trying again, what is in force stays");
                complained = true;
            }
            sleep(jittered(wait)).await;
            wait = (wait * 2).min(self.options.reconnect_interval);
        }
    }

    /// Logs in, waits for its turn, and asks until something fails.
    async fn serve(&self, talk: &mut Talk, again: bool) -> Result<Never, TalkError> {
        // Before the turn: an admin that says nothing holds up no other link.
        talk.log_in().await?;
        if self.options.login.is_none() {
            talk.look().await?;
        }
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else {
            // It is never closed.
            return std::future::pending().await;
        };
        self.ask(talk, turn, again).await
    }

    /// Asks until something fails. `again`: it did not last before, so that success is no news.
    async fn ask(
        &self,
        talk: &mut Talk,
        turn: OwnedSemaphorePermit,
        again: bool,
    ) -> Result<Never, TalkError> {
        let url = &self.options.urls[self.number];
        let mut turn = Some(turn);
        let mut open = None;
        let mut pause = FIRST_WAIT;
        loop {
            let Round { ours, idle } = self.round(talk).await?;
            if open.is_none() {
                open = Some(Open::count(&self.options.sessions));
                let kind = if ours { "an admin" } else { "a stock admin" };
                if again {
                    debug!(url, "polls {kind}");
                } else {
                    info!(url, "polls {kind}");
                }
            }
            if !ours {
                turn = None;
            } else if turn.is_none() {
                // It was a stock admin before; others may be asked already, and one is enough.
                turn = Arc::clone(&self.turn).acquire_owned().await.ok();
            }
            if idle {
                sleep(jittered(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                pause = FIRST_WAIT;
            }
        }
    }

    /// Asks once, and puts in force what has changed.
    async fn round(&self, talk: &mut Talk) -> Result<Round, TalkError> {
        let Some(question) = self.known.question().await else {
            let (groups, stand) = talk.fetch(&Group::ALL).await?;
            let ours = stand.is_some();
            let news = self.known.take(self.number, groups, stand).await;
            return Ok(Round { ours, idle: news == 0 });
        };
        let asked = Instant::now();
        let (changed, asked_at) = talk.ask(&question).await?;
        if changed.is_empty() {
            let ours = asked_at.is_some();
            self.known.take(self.number, Vec::new(), asked_at).await;
            return Ok(Round { ours, idle: asked.elapsed() < QUICK });
        }
        let (mut groups, mut stand) = talk.fetch(&changed).await?;
        if stand.is_some() && stand != asked_at {
            // More has changed since, perhaps in groups that were not named. Only all of them
            // together are one state again.
            (groups, stand) = talk.fetch(&Group::ALL).await?;
        }
        let ours = stand.is_some();
        let news = self.known.take(self.number, groups, stand).await;
        Ok(Round { ours, idle: news == 0 })
    }
}

enum Never {}
