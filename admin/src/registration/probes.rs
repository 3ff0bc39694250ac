//! Probes of registered instances: those that are lost are taken out, those that are back come in.
//!
//! Only rows that instances made themselves go; what a person configured or changed stays, as it was
//! or as down. An instance whose heartbeats come is alive whatever a probe says: it may be that this
//! admin alone cannot reach it.
//!
//! Source: ShenYu 2.7.1, its check of upstreams. Ours: an upstream that a person configured is left to
//! the health checks of the gateways.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use longmen_core::telemetry::Throttle;
use longmen_db::repository::upstream::{self, Origin, UpstreamRow};
use longmen_db::repository::{binding, instance};
use longmen_db::{Actor, Lease, require_lease};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::held::{DOWN, Held, UP, revived};
use super::{BEAT, millis};
use crate::config::RegisterConfig;
use crate::error::{ApiError, ApiResult};
use crate::jobs::Job;
use crate::state::AppState;

/// How long a probe may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Rows of one read.
const ROWS: i64 = 500;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Something accepts connections.
    Open,
    /// The host answers, and nothing listens.
    Closed,
    /// Nothing answers: the host is gone, or the way to it.
    Silent,
}

/// What is to be done about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Nothing,
    /// The instance is back.
    BringIn(Origin),
    /// It is lost.
    TakeDown,
    /// It was lost for long, and registered itself.
    Remove,
}

/// The rounds of one admin.
struct Probes {
    state: AppState,
    lease: Lease,
    /// Failed probes in a row, by id of the row.
    failures: HashMap<String, u32>,
    failed: Throttle,
}

/// Probes until the admin stops, if that is configured, on one of the admins.
pub(crate) async fn run(state: AppState) {
    let config = &state.config().register;
    if !config.checked {
        return;
    }
    let (every, stop) = (config.check_interval, state.stop().clone());
    let job = Job::new(state.store().clone(), "probes");
    job.run(stop, |lease| rounds(state.clone(), every, lease)).await;
}

/// Probes for as long as this admin holds the lease. What another one knew of failures is begun anew.
async fn rounds(state: AppState, every: Duration, lease: Lease) {
    let failures = HashMap::new();
    let mut probes = Probes { state, lease, failures, failed: Throttle::default() };
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = probes.round().await
            && let Some(others) = probes.failed.pass()
        {
            tracing::warn!("registered instances were not probed: {error}{others}");
        }
    }
}

impl Probes {
    async fn round(&mut self) -> ApiResult<()> {
        let rows = self.rows().await?;
        let found = probe_all(&rows, self.state.config().register.zombie_check_threads).await;
        if is_cut_off(&found) {
            tracing::debug!("no instance answers at all: this admin may be cut off");
            return Ok(());
        }
        let beating = self.beating().await?;
        let ids: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        self.failures.retain(|id, _| ids.contains(id.as_str()));
        let mut by_handler: BTreeMap<&str, Vec<(&UpstreamRow, Verdict)>> = BTreeMap::new();
        for row in &rows {
            let open = found.get(&row.upstream_url) == Some(&Found::Open)
                || self.state.registration().is_beating(&row.namespace_id, &row.upstream_url)
                || beating.contains(&(row.namespace_id.clone(), row.upstream_url.clone()));
            let failures = if open { 0 } else { self.failures.get(&row.id).unwrap_or(&0) + 1 };
            if failures == 0 {
                self.failures.remove(&row.id);
            } else {
                self.failures.insert(row.id.clone(), failures);
            }
            let verdict = judge(row, failures, self.state.now_ms(), &self.state.config().register);
            if verdict != Verdict::Nothing {
                by_handler.entry(&row.discovery_handler_id).or_default().push((row, verdict));
            }
        }
        for (handler_id, verdicts) in by_handler {
            self.apply(handler_id, &verdicts).await?;
        }
        Ok(())
    }

    /// Who said at any admin a moment ago that it is alive.
    async fn beating(&self) -> ApiResult<HashSet<(String, String)>> {
        let mut tx = self.state.store().read().await?;
        Ok(instance::beating(&mut tx, millis(BEAT)).await?.into_iter().collect())
    }

    /// All rows that follow their instance and may be probed.
    async fn rows(&self) -> ApiResult<Vec<UpstreamRow>> {
        let mut rows: Vec<UpstreamRow> = Vec::new();
        loop {
            let mut tx = self.state.store().read().await?;
            let after = rows.last().map_or("", |row| row.id.as_str()).to_owned();
            let next = upstream::following(&mut tx, &after, ROWS).await?;
            let whole = next.len() < usize::try_from(ROWS).unwrap_or(usize::MAX);
            rows.extend(next);
            if whole {
                rows.retain(|row| is_checked(row.props.as_deref()));
                return Ok(rows);
            }
        }
    }

    /// Does what was found to do about the rows of one handler, in one change set.
    async fn apply(&self, handler_id: &str, verdicts: &[(&UpstreamRow, Verdict)]) -> ApiResult<()> {
        let mut uow = self.state.store().begin(Actor::system()).await?;
        require_lease(&mut uow, &self.lease).await?;
        let Some(bound) = binding::load(&mut uow, handler_id).await? else { return Ok(()) };
        let selector_id = &bound.announcement.id;
        let Some(held) = Held::of(&mut uow, selector_id, handler_id).await? else { return Ok(()) };
        let ids: Vec<&str> = verdicts.iter().map(|(row, _)| row.id.as_str()).collect();
        let now = upstream::find_many(&mut uow, &ids).await?;
        let mut gone = Vec::new();
        for (seen, verdict) in verdicts {
            // Whoever changed it meanwhile knows more.
            if !now.contains(seen) {
                continue;
            }
            match *verdict {
                Verdict::Nothing => {}
                Verdict::BringIn(origin) => {
                    upstream::set_state(&mut uow, &seen.id, UP, origin).await?;
                }
                Verdict::TakeDown => {
                    upstream::set_state(&mut uow, &seen.id, DOWN, seen.origin).await?;
                }
                Verdict::Remove => gone.push(seen.id.as_str()),
            }
            tracing::info!(
                upstream.url = seen.upstream_url,
                selector.id = selector_id.as_str(),
                ?verdict,
                "a registered instance was probed"
            );
        }
        upstream::delete(&mut uow, &gone).await?;
        held.told(&mut uow, &gone).await?;
        if !uow.changes().is_empty() {
            uow.commit().await.map_err(ApiError::from)?;
        }
        Ok(())
    }
}

/// What to do about a row after so many failed probes in a row, 0 if the last one found it.
fn judge(row: &UpstreamRow, failures: u32, now_ms: i64, config: &RegisterConfig) -> Verdict {
    if failures == 0 {
        return revived(row).map_or(Verdict::Nothing, Verdict::BringIn);
    }
    if row.origin != Origin::Registered {
        return Verdict::Nothing;
    }
    if row.upstream_status == UP {
        return Verdict::TakeDown;
    }
    let lost_ms = now_ms.saturating_sub(row.updated_ms);
    let long = lost_ms >= i64::try_from(config.zombie_removal.as_millis()).unwrap_or(i64::MAX);
    if long && failures > config.zombie_check_times { Verdict::Remove } else { Verdict::Nothing }
}

/// Whether nothing at all answers, not even by a refusal, of several addresses.
fn is_cut_off(found: &HashMap<String, Found>) -> bool {
    found.len() > 1 && found.values().all(|found| *found == Found::Silent)
}

/// Whether the settings of an upstream allow to probe it.
fn is_checked(props: Option<&str>) -> bool {
    let props = props.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let Some(props) = props else { return true };
    let enabled = &props["healthCheckEnabled"];
    !(enabled == "false" || enabled == false)
}

async fn probe_all(rows: &[UpstreamRow], at_once: usize) -> HashMap<String, Found> {
    let urls: HashSet<String> = rows.iter().map(|row| row.upstream_url.clone()).collect();
    let probes = urls.into_iter().map(async |url| {
        let found = probe(&url).await;
        (url, found)
    });
    stream::iter(probes).buffer_unordered(at_once.max(1)).collect().await
}

async fn probe(url: &str) -> Found {
    match tokio::time::timeout(TIMEOUT, TcpStream::connect(url)).await {
        Ok(Ok(_)) => Found::Open,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Found::Closed,
        Ok(Err(_)) | Err(_) => Found::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AdminConfig;

    fn row(status: i32, origin: Origin) -> UpstreamRow {
        UpstreamRow {
            id: "1".to_owned(),
            discovery_handler_id: "2".to_owned(),
            namespace_id: "n".to_owned(),
            protocol: None,
            upstream_url: "127.0.0.1:1".to_owned(),
            upstream_status: status,
            weight: 50,
            props: None,
            origin,
            created_ms: 0,
            updated_ms: 1_000,
        }
    }

    /// As shipped: five more probes, sixty seconds.
    #[test]
    fn only_what_registered_itself_is_taken_out() {
        let config = AdminConfig::default().register;
        let judged = |status, origin, failures, now_ms| {
            judge(&row(status, origin), failures, now_ms, &config)
        };
        use Origin::{Away, Configured, Registered};
        assert_eq!(judged(UP, Registered, 0, 99_000), Verdict::Nothing);
        assert_eq!(judged(UP, Registered, 1, 99_000), Verdict::TakeDown);
        assert_eq!(judged(DOWN, Registered, 6, 60_999), Verdict::Nothing, "too early");
        assert_eq!(judged(DOWN, Registered, 5, 61_000), Verdict::Nothing, "too few");
        assert_eq!(judged(DOWN, Registered, 6, 61_000), Verdict::Remove);
        assert_eq!(judged(DOWN, Registered, 0, 99_000), Verdict::BringIn(Registered));
        for failures in [1, 6, 1_000] {
            for status in [UP, DOWN] {
                for origin in [Configured, Away] {
                    assert_eq!(judged(status, origin, failures, i64::MAX), Verdict::Nothing);
                }
            }
        }
        assert_eq!(judged(DOWN, Configured, 0, 99_000), Verdict::Nothing, "a person took it out");
        assert_eq!(judged(DOWN, Away, 0, 99_000), Verdict::BringIn(Configured));
    }

    #[test]
    fn an_admin_that_reaches_nothing_changes_nothing() {
        let found = |all: &[Found]| {
            all.iter().enumerate().map(|(at, found)| (at.to_string(), *found)).collect()
        };
        assert!(is_cut_off(&found(&[Found::Silent, Found::Silent])));
        assert!(!is_cut_off(&found(&[Found::Silent, Found::Closed])));
        assert!(!is_cut_off(&found(&[Found::Silent])));
        assert!(!is_cut_off(&found(&[])));
    }

    #[test]
    fn checks_can_be_switched_off_for_an_address() {
        for (props, checked) in [
            (None, true),
            (Some("{}"), true),
            (Some("{\"healthCheckEnabled\":\"true\"}"), true),
            (Some("{\"healthCheckEnabled\":\"false\"}"), false),
            (Some("{\"healthCheckEnabled\":false}"), false),
            (Some("no JSON"), true),
        ] {
            assert_eq!(is_checked(props), checked, "{props:?}");
        }
    }
}
