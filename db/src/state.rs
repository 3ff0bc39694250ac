//! Everything a gateway needs of one namespace, read in one moment.

use longmen_core::model::{Level, MetaData, Plugin, ProxySelector, Rule, Selector, UpstreamList};
use longmen_core::sync::{Event, Group};

use crate::Result;
use crate::change::{Change, Operation, current_version, epoch};
use crate::repository::{binding, condition_map, conditioned, meta_data, namespace_plugin};
use crate::tx::{Tx, UnitOfWork};

/// What gateways get of a bound selector or raw port.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The raw port; for an ordinary selector its announcement.
    pub announcement: ProxySelector,
    /// Its upstreams, in the order in which they were added; the list is never absent.
    pub upstreams: UpstreamList,
}

impl Binding {
    /// Records that it is new: the announcement, then the upstreams.
    ///
    /// Source: ShenYu 2.7.1, order of the frames of a binding.
    pub fn record_created(&self, uow: &mut UnitOfWork) {
        uow.record(
            self.change(Group::ProxySelector, Operation::Create)
                .stock_event(Event::Create)
                .after(&self.announcement),
        );
        uow.record(
            self.change(Group::DiscoverUpstream, Operation::Create)
                .stock_event(Event::Update)
                .after(&self.upstreams),
        );
    }

    /// Records that its upstreams changed; `before` is the list as it was.
    pub fn record_upstreams(&self, uow: &mut UnitOfWork, before: &UpstreamList) {
        uow.record(
            self.change(Group::DiscoverUpstream, Operation::Update)
                .stock_event(Event::Update)
                .before(before)
                .after(&self.upstreams),
        );
    }

    /// Records that it is gone: the announcement, then the upstreams. Of a raw port stock gateways
    /// get the former only.
    ///
    /// Source: ShenYu 2.7.1, order of the frames of a delete.
    pub fn record_deleted(&self, uow: &mut UnitOfWork) {
        uow.record(
            self.change(Group::ProxySelector, Operation::Delete)
                .stock_event(Event::Delete)
                .before(&self.announcement),
        );
        let mut upstreams =
            self.change(Group::DiscoverUpstream, Operation::Delete).before(&self.upstreams);
        if self.announcement.proxy_type.is_none() {
            upstreams = upstreams.stock_event(Event::Delete);
        }
        uow.record(upstreams);
    }

    fn change(&self, group: Group, operation: Operation) -> Change {
        Change::new(
            self.announcement.namespace_id.clone().unwrap_or_default(),
            group,
            &*self.announcement.id,
            operation,
        )
    }
}

/// The state of one namespace at one version.
#[derive(Debug, Clone, PartialEq)]
pub struct FullState {
    /// In which the version counts.
    pub epoch: String,
    /// The version that this state is.
    pub version: u64,
    /// The plugins, by sort, then id.
    pub plugins: Vec<Plugin>,
    /// The selectors, by id; `condition_list` is absent where there is no condition, as stock
    /// admins have it in a full set.
    pub selectors: Vec<Selector>,
    /// The rules, by id; `condition_list` as for selectors.
    pub rules: Vec<Rule>,
    /// The registered APIs, by id.
    pub metadata: Vec<MetaData>,
    /// The bindings, by discovery, raw ports before selectors.
    pub bindings: Vec<Binding>,
}

/// Reads the state of a namespace. In a [`ReadTx`](crate::ReadTx) all of it, the version included,
/// belongs to one moment. A namespace that does not exist is empty at version 0.
///
/// Cost: ten statements, whatever the size.
///
/// # Errors
/// The database's.
pub async fn full_state(tx: &mut Tx, namespace_id: &str) -> Result<FullState> {
    let epoch = epoch(tx).await?;
    let version = current_version(tx, namespace_id).await?;
    let plugins = namespace_plugin::models_of_namespace(tx, namespace_id).await?;
    let mut selectors = conditioned::of_namespace::<Selector>(tx, namespace_id).await?;
    let mut conditions = condition_map(tx, Level::Selector, namespace_id).await?;
    for selector in &mut selectors {
        selector.condition_list = conditions.remove(&selector.id);
    }
    let mut rules = conditioned::of_namespace::<Rule>(tx, namespace_id).await?;
    let mut conditions = condition_map(tx, Level::Rule, namespace_id).await?;
    for rule in &mut rules {
        rule.condition_list = conditions.remove(&rule.id);
    }
    let metadata = meta_data::models_of_namespace(tx, namespace_id).await?;
    let bindings = binding::of_namespace(tx, namespace_id).await?;
    Ok(FullState { epoch, version, plugins, selectors, rules, metadata, bindings })
}
