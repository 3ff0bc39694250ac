//! What the gateway has of each group, shared by all links, and how a fetch is put in force.

use longmen_core::snapshot::{ConfigState, Position};
use longmen_core::sync::{BadObject, Event, Frame, Group, Payload};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::super::Applier;
use super::answer::{Fetched, Groups, Stand};

/// How many groups there are.
const GROUPS: usize = Group::ALL.len();

/// One group as it was fetched last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Has {
    md5: String,
    /// The time of that state by the clock of the admin that gave it.
    modified: i64,
    /// The number of the link it came by.
    from: usize,
    /// Whether all of it could be read.
    whole: bool,
}

/// What the gateway has.
pub(super) struct Known {
    applier: Applier,
    namespace: String,
    groups: Mutex<[Option<Has>; GROUPS]>,
}

/// Groups to be put in force, and what stays of the old state beside what they say.
#[derive(Default)]
struct Change {
    frames: Vec<Frame>,
    /// Objects that could not be read, by group and id.
    unreadable: Vec<(Group, Option<String>)>,
}

impl Known {
    /// Nothing is known.
    pub(super) fn new(applier: Applier, namespace: String) -> Self {
        Self { applier, namespace, groups: Mutex::default() }
    }

    /// The parameters of a question; `None` while groups are missing that must be fetched first.
    pub(super) async fn question(&self) -> Option<String> {
        let groups = self.groups.lock().await;
        let parameter = |group: Group| {
            let Has { md5, modified, .. } = groups[group as usize].as_ref()?;
            Some(format!("{}={},{modified}", group.name(), super::client::escaped(md5)))
        };
        let parameters: Option<Vec<String>> = Group::ALL.into_iter().map(parameter).collect();
        Some(parameters?.join("&"))
    }

    /// Puts what was fetched by the link `from` in force, in one step, as far as it is news; how many
    /// groups that were. `stand` is where the whole state is with it, if an admin of ours says so.
    ///
    /// A group of another admin must be later than what is there: admins that share a database notice
    /// each other's changes after minutes only.
    pub(super) async fn take(&self, from: usize, groups: Groups, stand: Option<Stand>) -> usize {
        // Held to the end: links put things in force one after the other.
        let mut known = self.groups.lock().await;
        let mut change = Change::default();
        let mut news = 0;
        for (group, fetched) in groups {
            let before = &mut known[group as usize];
            let is_news = before.as_ref().is_none_or(|before| {
                before.md5 != fetched.md5
                    && (stand.is_some()
                        || before.from == from
                        || fetched.modified > before.modified)
            });
            if !is_news {
                if let Some(before) = before.as_mut().filter(|before| before.md5 == fetched.md5) {
                    (before.modified, before.from) = (before.modified.max(fetched.modified), from);
                }
                continue;
            }
            news += 1;
            let Fetched { md5, modified, objects } = fetched;
            let whole = change.add(group, objects, &self.namespace);
            *before = Some(Has { md5, modified, from, whole });
        }
        let complete = known.iter().all(|has| has.as_ref().is_some_and(|has| has.whole));
        let position = match stand.filter(|_| complete) {
            Some(Stand { epoch, version }) => Position { epoch, version },
            None => Position::default(),
        };
        if news > 0 {
            let objects: usize = change.frames.iter().map(|frame| frame.payload.len()).sum();
            let Change { frames, unreadable } = change;
            let fetched: Vec<Group> = frames.iter().map(|frame| frame.payload.group()).collect();
            let whole = fetched.len() == GROUPS;
            let keep = move |old: &ConfigState, new: &mut ConfigState| {
                carry_over(old, new, &fetched, &unreadable);
            };
            self.applier.replace(frames, position, whole, keep).await;
            info!(groups = news, objects, "fetched groups are in force");
        } else if position.version > 0 && self.applier.position().await != position {
            // Nothing of it concerns gateways, or it was changed back.
            self.applier.change(Vec::new(), position).await;
        }
        news
    }
}

impl Change {
    /// Adds a group; whether all of it could be read.
    fn add(
        &mut self,
        group: Group,
        objects: Result<(Payload, Vec<BadObject>), serde_json::Error>,
        namespace: &str,
    ) -> bool {
        let (payload, bad) = match objects {
            Ok(read) => read,
            Err(source) => {
                warn!(%group, "a group cannot be read, what was known of it stays: {source}");
                return false;
            }
        };
        let whole = bad.is_empty();
        for BadObject { group, id, source } in bad {
            warn!(%group, id, "object dropped, what was known of it stays: {source}");
            self.unreadable.push((group, id));
        }
        let payload = of_namespace(payload, namespace);
        self.frames.push(Frame { event: Event::Myself, payload, mark: None });
        whole
    }
}

/// Takes out objects of other namespaces: but for plugins, a stock admin hands out those of all.
fn of_namespace(payload: Payload, namespace: &str) -> Payload {
    let ours =
        |of: &Option<String>| of.as_deref().is_none_or(|of| of.is_empty() || of == namespace);
    macro_rules! filtered {
        ($($kind:ident),+) => {
            match payload {
                $(Payload::$kind(mut objects) => {
                    objects.retain(|object| ours(&object.namespace_id));
                    Payload::$kind(objects)
                })+
            }
        };
    }
    filtered!(
        AppAuth,
        Plugin,
        Rule,
        Selector,
        MetaData,
        ProxySelector,
        AiProxyApiKey,
        DiscoverUpstream
    )
}

/// What the fetch does not say: groups that were not fetched, and what could not be read of those
/// that were.
fn carry_over(
    old: &ConfigState,
    new: &mut ConfigState,
    fetched: &[Group],
    unreadable: &[(Group, Option<String>)],
) {
    for group in Group::ALL.into_iter().filter(|group| !fetched.contains(group)) {
        match group {
            Group::DiscoverUpstream => new.upstreams.clone_from(&old.upstreams),
            group => new.keep(old, group, None),
        }
    }
    for (group, id) in unreadable {
        match (group, id) {
            (Group::DiscoverUpstream, None) => {
                for (selector, list) in &old.upstreams {
                    new.upstreams.entry(selector.clone()).or_insert_with(|| list.clone());
                }
            }
            (group, id) => new.keep(old, *group, id.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longmen_core::snapshot::{Publisher, PublisherOptions, SnapshotStore};
    use longmen_core::sync::decode_group;

    use super::*;

    fn known() -> (Known, Applier) {
        let store = Arc::new(SnapshotStore::new());
        let registry = longmen_plugins::registry();
        let applier =
            Applier::new(Publisher::new(store, registry, PublisherOptions::default()), None);
        (Known::new(applier.clone(), "ns".into()), applier)
    }

    fn group(group: Group, md5: &str, modified: i64, data: &str) -> (Group, Fetched) {
        let raw = serde_json::value::RawValue::from_string(data.to_owned()).unwrap();
        let objects = decode_group(group, &raw);
        (group, Fetched { md5: md5.into(), modified, objects })
    }

    fn all(md5: &str, modified: i64) -> Groups {
        Group::ALL.map(|one| group(one, md5, modified, "[]")).into()
    }

    async fn selectors(applier: &Applier) -> Vec<String> {
        let ids = |state: &ConfigState| {
            let of_all = state.selectors.values().flat_map(|of_plugin| of_plugin.keys().cloned());
            of_all.collect()
        };
        applier.look(ids).await
    }

    #[tokio::test]
    async fn a_fetched_group_is_all_there_is_and_the_others_stay() {
        let (known, applier) = known();
        assert_eq!(known.question().await, None);
        assert_eq!(known.take(0, all("a", 1), None).await, 8);
        let two = r#"[{"id":"1","pluginName":"divide"},{"id":"2","pluginName":"divide"},
            {"id":"3","pluginName":"divide","namespaceId":"another"}]"#;
        let plugin = r#"[{"id":"5","name":"divide","enabled":true}]"#;
        let news = vec![group(Group::Plugin, "b", 2, plugin), group(Group::Selector, "b", 2, two)];
        assert_eq!(known.take(0, news, None).await, 2);
        assert_eq!(selectors(&applier).await, ["1", "2"]);
        let one = r#"[{"id":"2","pluginName":"divide"}]"#;
        assert_eq!(known.take(0, vec![group(Group::Selector, "c", 3, one)], None).await, 1);
        assert_eq!(selectors(&applier).await, ["2"]);
        assert_eq!(applier.look(|state| state.plugins.len()).await, 1);
        assert!(known.question().await.unwrap().contains("SELECTOR=c,3&META_DATA=a,1"));
    }

    #[tokio::test]
    async fn what_cannot_be_read_stays_as_it_was() {
        let (known, applier) = known();
        known.take(0, all("a", 1), None).await;
        let one = r#"[{"id":"1","pluginName":"divide"}]"#;
        known.take(0, vec![group(Group::Selector, "b", 2, one)], None).await;
        let bad =
            r#"[{"id":"1","pluginName":"divide","sort":7.5},{"id":"2","pluginName":"divide"}]"#;
        known.take(0, vec![group(Group::Selector, "c", 3, bad)], None).await;
        assert_eq!(selectors(&applier).await, ["1", "2"]);
        known.take(0, vec![group(Group::Selector, "d", 4, "{}")], None).await;
        assert_eq!(selectors(&applier).await, ["1", "2"]);
        // Asked about as it is: the admin would name it for ever otherwise.
        assert!(known.question().await.unwrap().contains("SELECTOR=d,4"));
    }

    #[tokio::test]
    async fn another_admin_must_be_later_and_the_same_one_need_not_be() {
        let (known, applier) = known();
        known.take(0, all("a", 10), None).await;
        let one = |id: &str| format!(r#"[{{"id":"{id}","pluginName":"divide"}}]"#);
        let take = async |from, md5, modified, id: &str| {
            known.take(from, vec![group(Group::Selector, md5, modified, &one(id))], None).await
        };
        assert_eq!(take(1, "b", 10, "1").await, 0);
        assert_eq!(take(1, "b", 11, "1").await, 1);
        // Its clock was set back.
        assert_eq!(take(1, "c", 5, "2").await, 1);
        assert_eq!(take(1, "c", 6, "2").await, 0);
        assert_eq!(selectors(&applier).await, ["2"]);
    }

    #[tokio::test]
    async fn the_position_is_known_only_where_everything_could_be_read() {
        let (known, applier) = known();
        let stand = |version| Some(Stand { epoch: "e".into(), version });
        let at = |version| Position { epoch: "e".into(), version };
        known.take(0, all("a", 1), stand(3)).await;
        assert_eq!(applier.position().await, at(3));
        known.take(0, Vec::new(), stand(4)).await;
        assert_eq!(applier.position().await, at(4));
        known.take(0, vec![group(Group::Rule, "b", 2, "{}")], stand(5)).await;
        assert_eq!(applier.position().await, Position::default());
        known.take(0, vec![group(Group::Rule, "c", 3, "[]")], stand(6)).await;
        assert_eq!(applier.position().await, at(6));
    }
}
