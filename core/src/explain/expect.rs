//! What becomes of an entry that was expected to take the request, also where the index rules it out.

use super::answer::{Asked, Expected, Instead, Kind, Named};
use super::lists::{self, List};
use super::{Asking, Expect, RequestFault};
use crate::chain::Found;
use crate::condition::RequestView;
use crate::matcher::{Entry, EntryKind, Index, Matchable, Verdict};
use crate::snapshot::{ConfigState, PluginPart, SelectorPart};

/// The expected entry, found in the configuration.
pub(super) struct Wanted {
    pub(super) plugin: String,
    selector: String,
    rule: Option<String>,
}

impl Wanted {
    /// Finds the entry.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(state: &ConfigState, expect: &Expect) -> Result<Self, RequestFault> {
        let plugin_of = |selector: &str| {
            let mut all = state.selectors.iter();
            all.find(|(_, of)| of.contains_key(selector)).map(|(plugin, _)| plugin.clone())
        };
        match expect {
            Expect::Selector(id) => {
                let expected = "the id of a selector of this configuration";
                let plugin = plugin_of(id)
                    .ok_or_else(|| RequestFault::new("expect.selectorId", id, expected))?;
                Ok(Self { plugin, selector: id.clone(), rule: None })
            }
            Expect::Rule { id, selector } => {
                let expected = "the id of a rule of this configuration";
                let fault = || RequestFault::new("expect.ruleId", id, expected);
                let has = |owner: &&String| {
                    state.rules.get(*owner).is_some_and(|rules| rules.contains_key(id))
                };
                let mut owners = state.rules.keys();
                let owner = match selector {
                    Some(selector) => Some(selector).filter(has),
                    None => owners.find(has),
                };
                let owner = owner.ok_or_else(fault)?;
                let plugin = plugin_of(owner).ok_or_else(fault)?;
                Ok(Self { plugin, selector: owner.clone(), rule: Some(id.clone()) })
            }
        }
    }

    fn named(&self, asking: &Asking<'_>) -> (Named, Option<Named>) {
        let state = asking.publisher.state();
        let named = |id: &str, name: Option<&str>| Named {
            id: id.to_owned(),
            name: name.unwrap_or_default().to_owned(),
            why: String::new(),
        };
        let row = state.selectors.get(&self.plugin).and_then(|all| all.get(&self.selector));
        let selector = named(&self.selector, row.and_then(|row| row.name.as_deref()));
        let rule = self.rule.as_ref().map(|id| {
            let row = state.rules.get(&self.selector).and_then(|all| all.get(id));
            named(id, row.and_then(|row| row.name.as_deref()))
        });
        (selector, rule)
    }

    fn answer(&self, asking: &Asking<'_>, taken: bool, why: String) -> Expected {
        let (selector, rule) = self.named(asking);
        let plugin = self.plugin.clone();
        let (fails, conditions, instead) = (None, Vec::new(), None);
        Expected { plugin, selector, rule, taken, why, fails, conditions, instead }
    }
}

/// The plugin of the expected entry is not asked at all.
pub(super) fn out_of_play(asking: &Asking<'_>, wanted: &Wanted, why: &str) -> Expected {
    wanted.answer(asking, false, why.to_owned())
}

/// What becomes of the expected entry at its plugin.
pub(super) fn judge<V: RequestView>(
    asking: &Asking<'_>,
    wanted: &Wanted,
    part: &PluginPart,
    view: &V,
    found: &Found<'_>,
) -> Expected {
    let selectors =
        List { asking, kind: Kind::Selector, owner: &part.name, class: part.class, view };
    let (selector, rule) = match found {
        Found::Hit(selector, hit) => (Some(*selector), Some(hit.rule)),
        Found::NoRule(selector) => (Some(*selector), None),
        Found::Nothing if part.run.is_some() => {
            let why = "the plugin does not look at requests of this protocol".to_owned();
            return wanted.answer(asking, false, why);
        }
        Found::Nothing | Found::NoSelector | Found::Unavailable => (None, None),
    };
    let rules = |owner| List { asking, kind: Kind::Rule, owner, class: part.class, view };
    let instead = selector.map(|selector| {
        let list = rules(&*selector.entry.id);
        let used = rule.and_then(|rule| selector.rules.get(&rule.id));
        let rule = used.map(|used| list.named(&used.entry));
        Instead { selector: selectors.named(&selector.entry), rule }
    });
    let chosen = selector.map(|selector| &*selector.entry);
    let seen = Seen::of(&selectors, &part.selectors, &wanted.selector, chosen);
    let mut seen = match (selector, &wanted.rule) {
        (Some(selector), Some(id)) if seen.taken => {
            Seen::of_rule(&rules(&wanted.selector), selector, id, rule.map(|rule| &*rule.id))
        }
        (_, Some(_)) => Seen { why: format!("its selector: {}", seen.why), ..seen },
        (_, None) => seen,
    };
    if matches!(found, Found::Unavailable) {
        seen.taken = false;
        seen.why
            .push_str("; the request is refused, since the guard cannot run as it is configured");
    }
    let mut expected = wanted.answer(asking, seen.taken, seen.why);
    expected.fails = seen.fails;
    expected.conditions = seen.conditions;
    expected.instead = instead.filter(|_| !seen.taken);
    expected
}

/// What becomes of one entry.
struct Seen {
    taken: bool,
    why: String,
    fails: Option<Asked>,
    conditions: Vec<Asked>,
}

impl Seen {
    fn not(why: impl Into<String>) -> Self {
        Self { taken: false, why: why.into(), fails: None, conditions: Vec::new() }
    }

    fn of<M, V>(list: &List<'_, V>, index: &Index<M>, id: &str, chosen: Option<&Entry>) -> Self
    where
        M: Matchable + Clone + Send + Sync + 'static,
        V: RequestView,
    {
        let object = list.object(id);
        let Some(item) = index.get(id) else {
            return Self::not(format!("not in force{}", lists::faults(&object)));
        };
        let entry = item.entry();
        let conditions = list.conditions(&entry.conditions, &object, entry.kind);
        let why = list.why(item, &object, &conditions, chosen);
        let not_met = entry.explain(&[], list.view, false).verdict == Verdict::NotMet;
        let fails = conditions.iter().find(|asked| not_met && !asked.ok).cloned();
        let taken = chosen.is_some_and(|chosen| chosen.id == entry.id);
        Self { taken, why, fails, conditions }
    }

    fn of_rule<V: RequestView>(
        list: &List<'_, V>,
        selector: &SelectorPart,
        id: &str,
        used: Option<&str>,
    ) -> Self {
        if !selector.continued {
            return Self::not("the selector does not go on to its rules (continued is off)");
        }
        let chosen = used.and_then(|used| selector.rules.get(used)).map(|rule| &rule.entry);
        if selector.entry.kind != EntryKind::Full {
            return Self::of(list, &selector.rules, id, chosen);
        }
        let taken = used == Some(id);
        let why = if taken {
            "the selector takes every request, and this is its last rule by sort and id"
        } else {
            "the selector takes every request, and then its last rule by sort and id is used, \
             whatever its conditions"
        };
        Self { taken, ..Self::not(why) }
    }
}
