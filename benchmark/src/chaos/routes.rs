//! The routes under edit: each a selector with two possible paths and some of the upstreams.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::timeline::{State, Timeline};
use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::origin::Origin;

/// Upstreams there are; each is named after its number.
pub(super) const UPSTREAMS: usize = 4;

/// One route.
#[derive(Debug)]
pub(super) struct Route {
    number: usize,
    pub(super) name: String,
    pub(super) selector: String,
    pub(super) handler: String,
    timeline: Mutex<Timeline>,
}

/// All routes, and the addresses of the upstreams.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) all: Vec<Route>,
    addresses: Vec<String>,
}

/// The name of an upstream.
pub(super) fn name(number: usize) -> String {
    format!("U{number}")
}

impl Route {
    /// The path that its selector takes in state `path`, or another path below it.
    pub(super) fn path(&self, path: usize) -> String {
        let letter = if path == 0 { 'a' } else { 'b' };
        format!("/chaos/{}/{letter}", self.number)
    }

    pub(super) fn condition(&self, path: usize) -> PathCondition {
        PathCondition::pattern(format!("{}/**", self.path(path)))
    }

    pub(super) fn timeline(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Routes {
    /// Makes them by the admin's API.
    pub(super) async fn create(
        api: &mut AdminApi,
        count: usize,
        origins: &[Origin],
    ) -> anyhow::Result<Arc<Self>> {
        let addresses: Vec<_> = origins.iter().map(|origin| origin.addr().to_string()).collect();
        let mut all = Vec::with_capacity(count);
        for number in 0..count {
            let name = format!("chaos {number}");
            let state = State { path: 0, enabled: true, upstreams: vec![0, 1] };
            let mut route = Route {
                number,
                selector: String::new(),
                handler: String::new(),
                timeline: Mutex::new(Timeline::new(state, Instant::now())),
                name: name.clone(),
            };
            let first = &addresses[..2];
            (route.selector, route.handler) =
                create(api, &name, &route.condition(0), "/chaos/**", first).await?;
            all.push(route);
        }
        Ok(Arc::new(Self { all, addresses }))
    }

    /// Upstreams as the admin takes them, the first with this weight and the others with 50.
    pub(super) fn upstreams(&self, numbers: &[usize], first: u32) -> Vec<(String, u32)> {
        let weights = std::iter::once(first).chain(std::iter::repeat(50));
        numbers.iter().map(|number| self.addresses[*number].clone()).zip(weights).collect()
    }
}

/// Makes a selector with upstreams and one rule; returns the ids of selector and discovery handler.
pub(super) async fn create(
    api: &mut AdminApi,
    name: &str,
    condition: &PathCondition,
    rule_pattern: &str,
    upstreams: &[String],
) -> anyhow::Result<(String, String)> {
    let selector = api.create_selector(name, 1, condition).await?;
    api.bind(&selector, name, upstreams).await?;
    let handler = api.discovery_handler(&selector).await?;
    let rule = Rule {
        selector_id: selector.clone(),
        name: name.to_owned(),
        sort: 1,
        condition: PathCondition::pattern(rule_pattern),
    };
    api.create_rule(&rule).await?;
    Ok((selector, handler))
}
