//! What is stored of a namespace, without ids and times.

use longmen_core::model::{Condition, DEFAULT_NAMESPACE, Upstream};
use longmen_db::full_state;

use crate::scene::Scene;

/// The rows that registrations make, each as a line, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) selectors: Vec<String>,
    pub(super) rules: Vec<String>,
    pub(super) meta_data: Vec<String>,
    pub(super) upstreams: Vec<String>,
}

/// The rows of the default namespace.
pub(super) async fn rows(scene: &Scene) -> Rows {
    let mut tx = scene.store().read().await.unwrap();
    let state = full_state(&mut tx, DEFAULT_NAMESPACE).await.unwrap();
    let name_of = |id: &str| {
        let found = state.selectors.iter().find(|one| one.id == id);
        found.map_or("?", |one| one.name.as_deref().unwrap_or_default())
    };
    let selectors = state.selectors.iter().map(|one| {
        let name = one.name.as_deref().unwrap_or_default();
        let (plugin, handle) = (&one.plugin_name, one.handle.as_deref().unwrap_or_default());
        format!("{plugin} {name} {} {handle}", conditions(one.condition_list.as_deref()))
    });
    let rules = state.rules.iter().map(|one| {
        let name = one.name.as_deref().unwrap_or_default();
        let handle = one.handle.as_deref().unwrap_or_default();
        let conditions = conditions(one.condition_list.as_deref());
        format!("{} {} {name} {conditions} {handle}", one.plugin_name, name_of(&one.selector_id))
    });
    let meta_data = state.metadata.iter().map(|one| {
        let one = longmen_core::model::MetaData { id: String::new(), ..one.clone() };
        serde_json::to_string(&one).unwrap()
    });
    let upstreams = state.bindings.iter().flat_map(|one| {
        let (plugin, name) = (&one.announcement.plugin_name, &one.announcement.name);
        let list = one.upstreams.upstreams().iter();
        list.map(move |upstream| format!("{plugin} {name} {}", in_words(upstream)))
    });
    Rows {
        selectors: sorted(selectors),
        rules: sorted(rules),
        meta_data: sorted(meta_data),
        upstreams: sorted(upstreams),
    }
}

fn in_words(upstream: &Upstream) -> String {
    let Upstream { protocol, url, status, weight, props, .. } = upstream;
    let (protocol, props) = (protocol.as_deref().unwrap_or("-"), props.as_deref().unwrap_or("-"));
    format!("{protocol} {url} {status} {weight} {props}")
}

fn conditions(list: Option<&[Condition]>) -> String {
    let one = |one: &Condition| {
        let value = one.param_value.as_deref().unwrap_or_default();
        format!("{} {} {value}", one.param_type, one.operator)
    };
    list.unwrap_or_default().iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    lines
}
