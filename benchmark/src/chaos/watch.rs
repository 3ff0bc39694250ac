//! Which version of the configuration every gateway has in force, as the admin tells it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::routes::Routes;
use crate::admin_api::AdminApi;
use crate::client::Server;
use crate::stage;
use crate::stats::{Histogram, Summary};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the last edits may take to be in force.
const LIMIT: Duration = Duration::from_secs(60);

/// When edits were in force.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchResult {
    /// From an edit's confirmation to the moment at which all gateways were known to have it, or a later
    /// one of the same route. Looks are 50 ms apart, more where the admin is away.
    pub in_force: Summary,
    /// The last version seen.
    pub version: u64,
}

/// Looks without pause.
pub(super) struct Watch {
    last: CancellationToken,
    task: JoinHandle<anyhow::Result<WatchResult>>,
}

impl Watch {
    pub(super) fn start(admin: Server, routes: Arc<Routes>) -> Self {
        let last = CancellationToken::new();
        Self { task: tokio::spawn(watch(admin, routes, last.clone())), last }
    }

    /// Waits until the last edits are in force everywhere.
    ///
    /// # Errors
    /// When they are not after 60 s.
    pub(super) async fn end(self) -> anyhow::Result<WatchResult> {
        self.last.cancel();
        self.task.await.context("the watch")?
    }
}

async fn watch(
    admin: Server,
    routes: Arc<Routes>,
    last: CancellationToken,
) -> anyhow::Result<WatchResult> {
    let mut api: Option<AdminApi> = None;
    let (mut in_force, mut version) = (Histogram::default(), 0);
    let mut ending: Option<Instant> = None;
    loop {
        let asked = Instant::now();
        // An admin that is away tells nothing; that is no failure of this part.
        if let Ok((stored, reached)) = look(&mut api, &admin).await {
            let now = Instant::now();
            version = stored;
            for route in &routes.all {
                let mut timeline = route.timeline();
                timeline.stored(stored, asked);
                let times = reached.map(|reached| timeline.reached(reached, now));
                times.into_iter().flatten().for_each(|time| in_force.record(time));
            }
        } else {
            api = None;
        }
        if last.is_cancelled() {
            if routes.all.iter().all(|route| route.timeline().settled()) {
                return Ok(WatchResult { in_force: in_force.summary(), version });
            }
            let begun = *ending.get_or_insert(asked);
            ensure!(begun.elapsed() < LIMIT, "the last edits are not in force after {LIMIT:?}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn look(api: &mut Option<AdminApi>, admin: &Server) -> anyhow::Result<(u64, Option<u64>)> {
    let api = match api {
        Some(api) => api,
        None => api.insert(stage::log_in(admin).await?),
    };
    api.versions().await
}
