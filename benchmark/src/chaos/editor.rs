//! Edits of the routes under load, each repeated until an admin confirms it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::routes::{Route, Routes, UPSTREAMS};
use super::timeline::State;
use crate::admin_api::{AdminApi, Plugin};
use crate::client::Server;
use crate::stage;
use crate::stats::{Histogram, Summary};

/// How long an edit may be repeated.
const LIMIT: Duration = Duration::from_secs(60);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What the editor did.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditorResult {
    /// Edits confirmed.
    pub edits: u32,
    /// Attempts that got no confirmation, since the admin or its database was away.
    pub repeated: u32,
    /// From the first attempt to the confirmation.
    pub confirmed: Summary,
}

/// Somebody who edits.
pub(super) struct Editor {
    admin: Server,
    api: Option<AdminApi>,
    routes: Arc<Routes>,
    /// Plugin and discovery handler of the routes that open streams use.
    streams: Vec<(Plugin, String)>,
    repeated: u32,
}

/// One kind of edit. Each sets a whole object, so that repeating one changes nothing.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Weights,
    Swap,
    Path,
    Switch,
    /// Of the plugin, so of all routes.
    Sort,
    /// The upstreams of the routes by which streams were opened.
    Streams,
}

/// A route that is switched off is soon switched on again.
const EDITS: [Edit; 7] =
    [Edit::Weights, Edit::Swap, Edit::Path, Edit::Switch, Edit::Switch, Edit::Sort, Edit::Streams];

impl Editor {
    pub(super) const fn new(
        admin: Server,
        routes: Arc<Routes>,
        streams: Vec<(Plugin, String)>,
    ) -> Self {
        Self { admin, api: None, routes, streams, repeated: 0 }
    }

    /// Makes so many edits, evenly over the time.
    ///
    /// # Errors
    /// When one is not confirmed within 60 s.
    pub(super) async fn run(mut self, count: u32, time: Duration) -> anyhow::Result<EditorResult> {
        let mut confirmed = Histogram::default();
        let mut ticks = interval(time / count.max(1));
        // What was missed while an admin was away is caught up with.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let routes = Arc::clone(&self.routes);
        for number in 0..count {
            ticks.tick().await;
            let at = number as usize;
            let route = &routes.all[at % routes.all.len()];
            let edit = EDITS[at / routes.all.len() % EDITS.len()];
            let begun = Instant::now();
            self.edit(route, edit, at).await.with_context(|| format!("edit {number}: {edit:?}"))?;
            confirmed.record(begun.elapsed());
        }
        Ok(EditorResult { edits: count, repeated: self.repeated, confirmed: confirmed.summary() })
    }

    async fn edit(&mut self, route: &Route, edit: Edit, number: usize) -> anyhow::Result<()> {
        let mut state = route.timeline().last().clone();
        // A weight, a place in the order, or the number of an upstream.
        let mut figure = 50;
        match edit {
            Edit::Weights => figure = 1 + u32::try_from(number % 99)?,
            Edit::Swap => {
                let kept = 1 + number % 3;
                state.upstreams =
                    state.upstreams.iter().map(|upstream| (upstream + kept) % UPSTREAMS).collect();
            }
            Edit::Path => state.path = 1 - state.path,
            Edit::Switch => state.enabled = !state.enabled,
            Edit::Sort => figure = 200 + u32::try_from(number % 7)?,
            Edit::Streams => figure = u32::try_from(number % UPSTREAMS)?,
        }
        route.timeline().send(state.clone(), Instant::now());
        let begun = Instant::now();
        loop {
            let failed = match self.attempt(route, edit, &state, figure).await {
                Ok(()) => break,
                Err(error) => error,
            };
            self.api = None;
            self.repeated += 1;
            if begun.elapsed() > LIMIT {
                return Err(failed);
            }
            tokio::time::sleep(PAUSE).await;
        }
        route.timeline().confirm(Instant::now());
        Ok(())
    }

    async fn attempt(
        &mut self,
        route: &Route,
        edit: Edit,
        state: &State,
        figure: u32,
    ) -> anyhow::Result<()> {
        let api = match &mut self.api {
            Some(api) => api,
            None => self.api.insert(stage::log_in(&self.admin).await?),
        };
        match edit {
            Edit::Weights | Edit::Swap => {
                let upstreams = self.routes.upstreams(&state.upstreams, figure);
                api.replace_upstreams(Plugin::DIVIDE, &route.handler, &upstreams).await
            }
            Edit::Path | Edit::Switch => {
                let condition = route.condition(state.path);
                api.update_selector(&route.selector, &route.name, &condition, state.enabled).await
            }
            Edit::Sort => api.sort_plugin(Plugin::DIVIDE, figure).await,
            Edit::Streams => {
                // Also without the one that all of them are open on.
                let upstreams = self.routes.upstreams(&[figure as usize], 50);
                for (plugin, handler) in &self.streams {
                    api.replace_upstreams(*plugin, handler, &upstreams).await?;
                }
                Ok(())
            }
        }
    }
}
