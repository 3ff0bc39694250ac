//! Clients that edit rules, and go on at the other admin where one does not answer.

use std::time::Duration;

use anyhow::Context as _;
use http::Method;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{Plan, chance, path, rule};
use crate::admin_api::AdminApi;
use crate::client::Server;

/// How long a client tries to make one edit.
const LIMIT: Duration = Duration::from_secs(60);

/// The pause before the other admin is asked.
const PAUSE: Duration = Duration::from_millis(50);

/// What all clients did.
#[derive(Debug, Default)]
pub(super) struct Edited {
    /// Rule and number of each edit that was acknowledged.
    pub(super) acknowledged: Vec<(u32, u64)>,
    /// Attempts without an answer.
    pub(super) unanswered: u64,
    /// Edits that had been made although nobody said so.
    pub(super) found_made: u64,
    /// The last number of each rule.
    pub(super) numbers: Vec<u64>,
    /// What went wrong.
    pub(super) faults: Vec<String>,
}

/// Clients at work.
#[derive(Debug)]
pub(super) struct Editors {
    clients: JoinSet<Edited>,
    stop: watch::Sender<bool>,
}

struct Client {
    apis: [AdminApi; 2],
    current: usize,
    selector: String,
    ids: Vec<String>,
    /// Which rules are its own: `first`, and each `step` later.
    first: u32,
    step: u32,
    edited: Edited,
}

impl Editors {
    /// Starts them. They know the admins by one log-in: a token is good at each of them.
    pub(super) fn start(
        plan: Plan,
        api: &AdminApi,
        servers: [Server; 2],
        selector: &str,
        ids: &[String],
        numbers: &[u64],
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        for first in 0..plan.clients {
            let client = Client {
                apis: servers.clone().map(|server| api.at(server)),
                current: first as usize % 2,
                selector: selector.to_owned(),
                ids: ids.to_owned(),
                first,
                step: plan.clients,
                edited: Edited { numbers: numbers.to_owned(), ..Edited::default() },
            };
            let every = Duration::from_secs_f64(f64::from(plan.clients) / f64::from(plan.rate));
            clients.spawn(client.work(every, stopped.clone()));
        }
        Self { clients, stop }
    }

    /// Waits for the edits under way.
    pub(super) async fn end(mut self) -> anyhow::Result<Edited> {
        self.stop.send_replace(true);
        let mut all = Edited::default();
        while let Some(one) = self.clients.join_next().await {
            let one = one.context("a client")?;
            all.acknowledged.extend(one.acknowledged);
            all.unanswered += one.unanswered;
            all.found_made += one.found_made;
            all.faults.extend(one.faults);
            all.numbers.resize(one.numbers.len(), 0);
            for (all, one) in all.numbers.iter_mut().zip(one.numbers) {
                *all = (*all).max(one);
            }
        }
        Ok(all)
    }
}

impl Client {
    async fn work(mut self, every: Duration, stopped: watch::Receiver<bool>) -> Edited {
        let mut ticks = interval(every);
        // What was missed while an admin was away is caught up with.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let own = (self.ids.len() as u32).saturating_sub(self.first).div_ceil(self.step);
        if own == 0 {
            return self.edited;
        }
        while !*stopped.borrow() {
            ticks.tick().await;
            let n = self.first + chance(own) * self.step;
            let number = self.edited.numbers[n as usize] + 1;
            if let Err(error) = self.edit(n, number).await {
                self.edited.faults.push(format!("edit {number} of rule {n}: {error:#}"));
                break;
            }
            self.edited.numbers[n as usize] = number;
            self.edited.acknowledged.push((n, number));
        }
        self.edited
    }

    /// Makes one edit, at whichever admin.
    async fn edit(&mut self, n: u32, number: u64) -> anyhow::Result<()> {
        let id = self.ids[n as usize].clone();
        let wanted = rule(&self.selector, n, number);
        let begun = Instant::now();
        let mut unsure = false;
        loop {
            let failed = match self.attempt(&id, n, number, &wanted, unsure).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            unsure = true;
            self.edited.unanswered += 1;
            if begun.elapsed() >= LIMIT {
                return Err(failed);
            }
            self.current = 1 - self.current;
            sleep(PAUSE).await;
        }
    }

    async fn attempt(
        &mut self,
        id: &str,
        n: u32,
        number: u64,
        wanted: &crate::admin_api::Rule,
        unsure: bool,
    ) -> anyhow::Result<()> {
        let api = &mut self.apis[self.current];
        if unsure {
            let now = api.call(Method::GET, &format!("/rule/{id}"), None).await?;
            let at = &now["ruleConditions"][0]["paramValue"];
            if *at == path(n, number).as_str() {
                self.edited.found_made += 1;
                return Ok(());
            }
        }
        api.update_rule(id, wanted).await
    }
}
