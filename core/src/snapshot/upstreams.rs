//! The upstream list of one selector: what a new list does to the old one.

use serde::{Deserialize, Serialize};

use crate::model::{Upstream, UpstreamList, UpstreamStatus};

use super::state::UpstreamMode;

/// Upstreams of a selector as known now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamsOfSelector {
    /// Name of the plugin of that selector.
    pub plugin_name: String,
    /// The entries, in the order they came.
    pub entries: Vec<Upstream>,
    /// Whether the entries come from a source that a stock admin watches.
    pub watched: bool,
}

impl UpstreamsOfSelector {
    /// Takes a list in; says whether anything changed.
    ///
    /// A list is the whole truth and replaces, but for one that a stock admin sends about a single
    /// instance of a watched source: that merges by (protocol, url). Full lists of watched sources
    /// are told by entries without `id` whose `discoveryHandlerId` is the selector's id. An empty
    /// list always clears.
    ///
    /// Source: behaviour of ShenYu 2.7.1's discovery sources; the reference merges everything, so
    /// that an upstream taken out of a list keeps its traffic.
    pub(super) fn take(&mut self, list: &UpstreamList, mode: UpstreamMode) -> bool {
        let before = self.clone();
        self.plugin_name.clone_from(&list.plugin_name);
        let entries = list.upstreams();
        let marked = is_full_list_of_watched(list);
        if marked {
            self.watched = true;
        } else if entries.iter().any(|entry| entry.id.is_some()) {
            self.watched = false;
        }
        let replace = entries.is_empty()
            || match mode {
                UpstreamMode::Replace => true,
                UpstreamMode::Merge => false,
                UpstreamMode::Auto => !self.watched || marked,
            };
        if replace {
            let unknown_weights = self.watched && entries.iter().all(|entry| entry.weight == 0);
            let known = std::mem::take(&mut self.entries);
            self.entries = entries.to_vec();
            if unknown_weights {
                for entry in &mut self.entries {
                    if let Some(old) = known.iter().find(|old| same(old, entry)) {
                        entry.weight = old.weight;
                    }
                }
            }
        } else {
            for entry in entries {
                self.merge(entry);
            }
        }
        *self != before
    }

    fn merge(&mut self, entry: &Upstream) {
        let at = self.entries.iter().position(|old| same(old, entry));
        match (at, entry.state()) {
            (Some(at), UpstreamStatus::Down) => {
                self.entries.remove(at);
            }
            (Some(at), UpstreamStatus::Up) => self.entries[at] = entry.clone(),
            (None, UpstreamStatus::Down) => {}
            (None, UpstreamStatus::Up) => self.entries.push(entry.clone()),
        }
    }
}

fn same(a: &Upstream, b: &Upstream) -> bool {
    let protocol = |u: &Upstream| u.protocol.clone().unwrap_or_default();
    a.url == b.url && protocol(a) == protocol(b)
}

fn is_full_list_of_watched(list: &UpstreamList) -> bool {
    let entries = list.upstreams();
    !entries.is_empty()
        && entries.iter().all(|entry| {
            entry.id.is_none() && entry.discovery_handler_id.as_deref() == Some(&list.selector_id)
        })
}

#[cfg(test)]
mod tests {
    use super::{UpstreamMode, UpstreamsOfSelector};
    use crate::model::{Upstream, UpstreamList};

    fn list(entries: &[(&str, i32, i32)], local: bool, handler: Option<&str>) -> UpstreamList {
        UpstreamList {
            selector_id: "s1".into(),
            plugin_name: "divide".into(),
            upstream_data_list: Some(
                entries
                    .iter()
                    .map(|(url, status, weight)| Upstream {
                        id: local.then(|| format!("row-{url}")),
                        discovery_handler_id: handler.map(str::to_owned),
                        url: (*url).into(),
                        status: *status,
                        weight: *weight,
                        ..Upstream::default()
                    })
                    .collect(),
            ),
            ..UpstreamList::default()
        }
    }

    fn urls(state: &UpstreamsOfSelector) -> Vec<&str> {
        state.entries.iter().map(|entry| entry.url.as_str()).collect()
    }

    #[test]
    fn a_local_list_replaces() {
        let mut state = UpstreamsOfSelector::default();
        let auto = UpstreamMode::Auto;
        assert!(state.take(&list(&[("a", 0, 1), ("b", 0, 1)], true, Some("h")), auto));
        assert!(state.take(&list(&[("b", 0, 1)], true, Some("h")), auto));
        assert_eq!(urls(&state), ["b"]);
        assert!(!state.take(&list(&[("b", 0, 1)], true, Some("h")), auto), "nothing changed");
        assert!(state.take(&list(&[], true, None), auto));
        assert!(state.entries.is_empty());
    }

    #[test]
    fn a_watched_source_merges_single_instances_and_replaces_by_marked_lists() {
        let mut state = UpstreamsOfSelector::default();
        let auto = UpstreamMode::Auto;
        state.take(&list(&[("a", 0, 5), ("b", 0, 5)], false, Some("s1")), auto);
        state.take(&list(&[("c", 0, 7)], false, Some("h")), auto);
        assert_eq!(urls(&state), ["a", "b", "c"]);
        state.take(&list(&[("a", 1, 5)], false, Some("h")), auto);
        assert_eq!(urls(&state), ["b", "c"]);
        state.take(&list(&[("c", 0, 0), ("d", 0, 0)], false, Some("s1")), auto);
        assert_eq!(urls(&state), ["c", "d"]);
        assert_eq!(state.entries[0].weight, 7, "unknown weights keep what was known");
    }

    #[test]
    fn the_key_overrides_what_a_list_looks_like() {
        let mut state = UpstreamsOfSelector::default();
        state.take(&list(&[("a", 0, 1)], true, Some("h")), UpstreamMode::Merge);
        state.take(&list(&[("b", 0, 1)], true, Some("h")), UpstreamMode::Merge);
        assert_eq!(urls(&state), ["a", "b"]);
        state.take(&list(&[("c", 0, 1)], true, Some("h")), UpstreamMode::Replace);
        assert_eq!(urls(&state), ["c"]);
    }
}
