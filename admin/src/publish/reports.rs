//! What this admin knows of its gateways, told to the other admins by the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longmen_core::telemetry::Throttle;
use longmen_db::repository::gateway_report::{self, Report, ReportRow};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::gateways::GatewayView;

/// How often changes are written. However many versions a gateway acknowledges meanwhile, the last one
/// is written.
const EVERY: Duration = Duration::from_millis(500);

/// How often an admin says that it is alive, though nothing changed.
const ALIVE: Duration = Duration::from_secs(5);

/// After which silence of an admin its gateways count as gone.
const SILENCE_MS: i64 = 15_000;

/// How long gateways are remembered that are gone.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

/// Most rows of other admins that are read.
const MAX_ROWS: i64 = 10_000;

/// How long the last word may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Writes what changed until `stop`, and then that all are gone.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    if !shared.store.is_shared() {
        return;
    }
    let failed = Throttle::default();
    let mut written: HashMap<u64, GatewayView> = HashMap::new();
    let mut said = Instant::now();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
        let changed = changed(&shared, &written);
        if changed.is_empty() && said.elapsed() < ALIVE {
            continue;
        }
        let rows: Vec<Report> = changed.iter().filter_map(report).collect();
        let writing = gateway_report::write(&shared.store, &shared.admin, &rows);
        match shared.patience.state("what is known of gateways", writing).await {
            Ok(()) => {
                said = Instant::now();
                written.extend(changed.into_iter().map(|view| (view.id, view)));
                let known = shared.gateways.list();
                written.retain(|id, _| known.iter().any(|view| view.id == *id));
            }
            Err(error) => {
                if let Some(others) = failed.pass() {
                    tracing::warn!("other admins do not see its gateways: {error:#}{others}");
                }
            }
        }
    }
    let gone = written.into_values().map(|view| GatewayView { connected: false, ..view });
    let rows: Vec<Report> = gone.filter_map(|view| report(&view)).collect();
    // Without it the others find out by its silence.
    let _ = timeout(FAREWELL, gateway_report::write(&shared.store, &shared.admin, &rows)).await;
}

/// Forgets gateways that are long gone, from time to time. A job of one admin.
pub(super) async fn forget(shared: Arc<Shared>) {
    let mut ticks = interval(Duration::from_secs(300));
    loop {
        ticks.tick().await;
        if let Err(error) = gateway_report::forget(&shared.store, REMEMBERED_MS).await {
            tracing::debug!("gateways that are gone stay listed for now: {error}");
        }
    }
}

fn changed(shared: &Shared, written: &HashMap<u64, GatewayView>) -> Vec<GatewayView> {
    let mut views = shared.gateways.list();
    views.retain(|view| written.get(&view.id) != Some(view));
    views
}

fn report(view: &GatewayView) -> Option<Report> {
    let report = serde_json::to_string(view).ok()?;
    Some(Report { connection: view.id, connected: view.connected, report })
}

/// The gateways of all admins, this one's as they are now. Of one gateway that was connected several
/// times the last connection counts.
pub(super) fn merged(own: Vec<GatewayView>, others: Vec<ReportRow>) -> Vec<GatewayView> {
    let mut all = own;
    for row in others {
        // Of another release, perhaps.
        let Ok(mut view) = serde_json::from_str::<GatewayView>(&row.report) else { continue };
        view.connected = row.connected && row.silent_ms < SILENCE_MS;
        view.admin = row.admin;
        all.push(view);
    }
    let mut last: HashMap<String, (bool, i64, String)> = HashMap::new();
    for view in &all {
        let standing = (view.connected, view.since, view.admin.clone());
        let known = last.entry(view.key()).or_insert_with(|| standing.clone());
        *known = standing.max(std::mem::take(known));
    }
    // Several open connections with one admin are so many gateways: it would know.
    all.retain(|view| {
        last.get(&view.key()).is_some_and(|(connected, since, admin)| {
            view.admin == *admin
                && (view.connected && *connected
                    || (view.connected, view.since) == (*connected, *since))
        })
    });
    all.sort_by_key(|view| (view.since, view.id));
    all
}

/// All rows of other admins.
pub(super) async fn of_others(
    shared: &Shared,
    tx: &mut longmen_db::Tx,
) -> longmen_db::Result<Vec<ReportRow>> {
    if !shared.store.is_shared() {
        return Ok(Vec::new());
    }
    gateway_report::of_others(tx, &shared.admin, MAX_ROWS).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::gateways::tests::view;

    fn row(view: &GatewayView, silent_ms: i64) -> ReportRow {
        ReportRow {
            admin: "b".into(),
            connection: i64::try_from(view.id).unwrap(),
            silent_ms,
            connected: view.connected,
            report: serde_json::to_string(view).unwrap(),
        }
    }

    #[test]
    fn gateways_of_an_admin_that_is_silent_are_gone() {
        let (mut one, mut two) = (view(1), view(2));
        (one.gateway, two.gateway) = (Some("x".into()), Some("y".into()));
        let all = merged(vec![], vec![row(&one, 0), row(&two, SILENCE_MS)]);
        assert_eq!(all.iter().map(|view| view.connected).collect::<Vec<_>>(), [true, false]);
        assert_eq!(all[0].admin, "b");
    }

    #[test]
    fn a_gateway_that_went_over_to_another_admin_is_listed_once() {
        let (mut here, mut there) = (view(1), view(9));
        (here.gateway, there.gateway) = (Some("x".into()), Some("x".into()));
        (here.since, there.since) = (20, 10);
        // The other admin was killed and has not been missed yet.
        let all = merged(vec![here.clone()], vec![row(&there, 0)]);
        assert_eq!(all, [here.clone()]);
        // It left here for the other one.
        let mut left = here;
        left.connected = false;
        let all = merged(vec![left], vec![row(&there, 0)]);
        assert_eq!(all.len(), 1);
        assert!(all[0].connected);
    }

    #[test]
    fn two_processes_at_one_address_are_two_gateways() {
        let (mut old, mut new) = (view(1), view(2));
        (old.gateway, new.gateway) = (Some("x".into()), Some("y".into()));
        assert_eq!(merged(vec![old, new], vec![]).len(), 2);
    }
}
