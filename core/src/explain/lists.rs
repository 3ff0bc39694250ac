//! The plugins in their order, and what becomes of the selectors and rules of each.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::answer::{self, Asked, Kind, Looked, Named, State, Step};
use super::{Asking, MAX_CANDIDATES};
use crate::chain::Found;
use crate::condition::{CompiledConditions, Compiler, Got, RequestView};
use crate::mask::{MASK, is_secret, is_secret_header, is_secret_parameter};
use crate::matcher::{Considered, Entry, EntryKind, Index, Matchable, Verdict};
use crate::model::{Condition, MatchMode, Plugin, PluginClass};
use crate::snapshot::{PluginPart, SelectorKey, SelectorPart};
use crate::sync::{GatewayFault, Group};

/// Lists up to this length are looked through for entries that are switched off and would apply.
const MAX_SCAN: usize = 10_000;

/// The most of those that are told.
const MAX_NEAR: usize = 10;

/// A plugin in its place.
pub(super) enum Place<'a> {
    /// It takes no part.
    Idle(Box<Step>),
    /// It takes part.
    Part(&'a PluginPart),
}

/// A selector or rule as configured.
pub(super) struct Object<'a> {
    name: &'a str,
    /// `None` where those in force are older ones.
    conditions: Option<&'a [Condition]>,
    faults: &'a [GatewayFault],
}

/// Every plugin that is configured, in running order.
pub(super) fn places<'a>(asking: &'a Asking<'_>) -> Vec<Place<'a>> {
    let registry = asking.publisher.registry();
    let parts = &asking.snapshot.plugins;
    let active = parts.iter().map(|part| {
        let place: (i32, i32, &str) = (part.sort, part.order, &part.name);
        (place, Place::Part(part))
    });
    let rows = asking.publisher.state().plugins.values();
    let idle = rows.filter(|row| parts.iter().all(|part| *part.name != *row.name));
    let idle = idle.map(|row| {
        let order = registry.order_of(&row.name);
        let sort = row.sort.unwrap_or(order);
        let (state, why) = idle_because(asking, row);
        let step = bare(&row.name, sort, state, why.to_owned());
        ((sort, order, row.name.as_str()), Place::Idle(Box::new(step)))
    });
    let mut all: Vec<_> = active.chain(idle).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, place)| place).collect()
}

fn idle_because(asking: &Asking<'_>, row: &Plugin) -> (State, &'static str) {
    let registry = asking.publisher.registry();
    if registry.is_off(&row.name) {
        (State::Missing, "this gateway has the plugin switched off in its own configuration")
    } else if !row.enabled {
        (State::Off, "the plugin is switched off")
    } else {
        (State::Missing, "this gateway does not have the plugin, and does without it")
    }
}

/// A step at which nothing is compared.
pub(super) fn bare(plugin: &str, order: i32, state: State, effect: String) -> Step {
    Step {
        plugin: plugin.to_owned(),
        order,
        state,
        ends: false,
        path: None,
        canonical: false,
        considered: 0,
        selectors: None,
        rules: None,
        selector: None,
        rule: None,
        candidates: Vec::new(),
        effect,
        external: Vec::new(),
    }
}

/// What becomes of a request at a plugin, before the plugin itself has a say.
pub(super) fn step(
    asking: &Asking<'_>,
    part: &PluginPart,
    view: &impl RequestView,
    found: &Found<'_>,
    protocol: &str,
) -> Step {
    let (state, effect) = match found {
        Found::Nothing if part.run.is_some() => {
            let text = format!("does not look at requests of the protocol {protocol}");
            return bare(&part.name, part.sort, State::PassedBy, text);
        }
        Found::Nothing => (
            State::Missing,
            "this gateway does not have the plugin, and nothing of it is meant for this request",
        ),
        Found::NoSelector => (State::NoSelector, "no selector applies: the request goes on"),
        Found::NoRule(_) => (State::NoRule, "no rule applies: the request goes on"),
        Found::Hit(..) => (State::Matched, ""),
        Found::Unavailable => (State::Unavailable, ""),
    };
    let mut step = bare(&part.name, part.sort, state, effect.to_owned());
    step.path = Some(view.effective_path().to_owned());
    let selector = selector_of(part, view, found);
    let chosen = match selector {
        Some(selector) => part.selectors.get(&selector.entry.id),
        None if part.run.is_none() => part.selectors.look(view),
        None => None,
    };
    let list = List { asking, kind: Kind::Selector, owner: &part.name, class: part.class, view };
    let looked = list.look_through(&part.selectors, chosen, &mut step.candidates);
    step.considered = looked.considered;
    step.selectors = Some(looked);
    step.selector = chosen.map(|chosen| list.named(chosen.entry()));
    let Some(selector) = selector.filter(|_| part.run.is_some()) else { return step };
    let owner = &*selector.entry.id;
    let list = List { asking, kind: Kind::Rule, owner, class: part.class, view };
    let rule = match found {
        Found::Hit(_, hit) => Some(hit.rule),
        _ => None,
    };
    if !selector.continued || selector.entry.kind == EntryKind::Full {
        step.rules = Some(Looked { total: selector.rules.len(), considered: 0, left_out: 0 });
    } else {
        let chosen = rule.and_then(|rule| selector.rules.get(&rule.id));
        let looked = list.look_through(&selector.rules, chosen, &mut step.candidates);
        step.considered += looked.considered;
        step.rules = Some(looked);
    }
    step.rule = rule.map(|rule| {
        let entry = selector.rules.get(&rule.id).filter(|_| selector.continued);
        rule_named(&list, selector, entry.map(|rule| rule.entry()), &rule.id)
    });
    step
}

/// The selector that applies, also where the request is refused for one of its rules.
fn selector_of<'s>(
    part: &'s PluginPart,
    view: &impl RequestView,
    found: &Found<'s>,
) -> Option<&'s Arc<SelectorPart>> {
    let path = view.effective_path();
    match found {
        Found::Hit(selector, _) | Found::NoRule(selector) => Some(*selector),
        Found::Unavailable if part.run.is_some() => {
            let blocks = |selector: &Arc<SelectorKey>| selector.entry.could_apply(path);
            let of_selector = part.selectors.blocked().iter().any(blocks);
            let key = part.selectors.look(view).filter(|_| !of_selector)?;
            part.part_of(key)
        }
        Found::Unavailable | Found::Nothing | Found::NoSelector => None,
    }
}

fn rule_named<V: RequestView>(
    list: &List<'_, V>,
    selector: &SelectorPart,
    entry: Option<&Entry>,
    id: &str,
) -> Named {
    match entry {
        None => Named {
            id: id.to_owned(),
            name: String::new(),
            why: "the selector does not go on to its rules (continued is off)".to_owned(),
        },
        Some(entry) if selector.entry.kind == EntryKind::Full => Named {
            why:
                "the selector takes every request, and then its last rule by sort and id is used, \
                  whatever its conditions"
                    .to_owned(),
            ..list.named(entry)
        },
        Some(entry) => list.named(entry),
    }
}

/// The selectors of a plugin, or the rules of a selector.
pub(super) struct List<'a, V> {
    pub(super) asking: &'a Asking<'a>,
    pub(super) kind: Kind,
    /// The plugin's name, or the selector's id.
    pub(super) owner: &'a str,
    pub(super) class: PluginClass,
    pub(super) view: &'a V,
}

impl<V: RequestView> List<'_, V> {
    /// Tells of the entries that the request is compared with.
    fn look_through<M>(
        &self,
        index: &Index<M>,
        chosen: Option<&M>,
        into: &mut Vec<answer::Entry>,
    ) -> Looked
    where
        M: Matchable + Clone + Send + Sync + 'static,
    {
        let Considered { mut entries, count } = index.considered(self.view, MAX_CANDIDATES);
        let has = |entries: &[&M], item: &M| {
            entries.iter().any(|known| known.entry().id == item.entry().id)
        };
        // It may be further down than what is told.
        entries.extend(chosen.filter(|chosen| !has(&entries, chosen)));
        let left_out = count.saturating_sub(entries.len());
        if chosen.is_none() && index.len() <= MAX_SCAN {
            let mut near = Vec::new();
            index.for_each(&mut |item: &M| {
                let entry = item.entry();
                if near.len() < MAX_NEAR && !entry.enabled && entry.would_apply(self.view) {
                    near.push(item);
                }
            });
            near.retain(|item| !has(&entries, item));
            near.sort_by(|a, b| a.entry().precedence().cmp(&b.entry().precedence()));
            entries.extend(near);
        }
        let chosen = chosen.map(Matchable::entry);
        into.extend(entries.iter().map(|item| self.told(*item, chosen)));
        Looked { total: index.len(), considered: count, left_out }
    }

    fn told<M: Matchable>(&self, item: &M, chosen: Option<&Entry>) -> answer::Entry {
        let entry = item.entry();
        let object = self.object(&entry.id);
        let conditions = self.conditions(&entry.conditions, &object, entry.kind);
        let is_chosen = chosen.is_some_and(|chosen| chosen.id == entry.id);
        let why = self.why(item, &object, &conditions, chosen);
        let (id, name) = (entry.id.to_string(), object.name.to_owned());
        answer::Entry { kind: self.kind, id, name, chosen: is_chosen, why, conditions }
    }

    /// Why an entry is used, or why not.
    pub(super) fn why<M: Matchable>(
        &self,
        item: &M,
        object: &Object<'_>,
        conditions: &[Asked],
        chosen: Option<&Entry>,
    ) -> String {
        let entry = item.entry();
        if item.blocked() {
            let meant = entry.could_apply(self.view.effective_path());
            let text = if meant { "is" } else { "is not" };
            let faults = faults(object);
            return format!(
                "cannot be used as configured{faults}; the request {text} refused for it"
            );
        }
        let mut why = match entry.explain(&[], self.view, false).verdict {
            Verdict::Disabled if entry.would_apply(self.view) => {
                "switched off; it would apply".to_owned()
            }
            Verdict::Disabled => "switched off".to_owned(),
            Verdict::NoConditions => "goes by conditions and has none: never applies".to_owned(),
            Verdict::NotMet => first_failure(entry, conditions),
            Verdict::Always | Verdict::Met => match chosen {
                Some(chosen) if chosen.id == entry.id => {
                    format!("applies, and comes first: {}", place(entry))
                }
                Some(chosen) => {
                    let (label, rule) = (self.label(chosen), before(chosen, entry));
                    format!("applies, but {label} comes first by {rule}")
                }
                None => "applies".to_owned(),
            },
        };
        if !object.faults.is_empty() {
            why.push_str("; an earlier version of it is in force");
            why.push_str(&faults(object));
        }
        why
    }

    /// The name of an entry, or its id where it has none.
    fn label(&self, entry: &Entry) -> String {
        let name = self.object(&entry.id).name;
        if name.is_empty() { entry.id.to_string() } else { name.to_owned() }
    }

    /// An entry by name, and why it comes first.
    pub(super) fn named(&self, entry: &Entry) -> Named {
        let name = self.object(&entry.id).name.to_owned();
        Named { id: entry.id.to_string(), name, why: place(entry) }
    }

    /// The entry as configured.
    pub(super) fn object(&self, id: &str) -> Object<'_> {
        let publisher = self.asking.publisher;
        let state = publisher.state();
        let (group, known) = match self.kind {
            Kind::Selector => {
                let row = state.selectors.get(self.owner).and_then(|all| all.get(id));
                let row = row.map(|row| (row.name.as_deref(), row.match_mode, row.conditions()));
                (Group::Selector, row)
            }
            Kind::Rule => {
                let row = state.rules.get(self.owner).and_then(|all| all.get(id));
                let row = row.map(|row| (row.name.as_deref(), row.match_mode, row.conditions()));
                (Group::Rule, row)
            }
        };
        let faults = publisher.faults_of(group, id);
        let (name, mode, conditions) = known.unwrap_or_default();
        // A guard keeps its last good conditions, of which the texts are gone.
        let kept = !faults.is_empty()
            && self.class == PluginClass::Guard
            && !Compiler::new(TimeZone::UTC).compile(mode, conditions).faults.is_empty();
        let conditions = (!kept).then_some(conditions);
        Object { name: name.unwrap_or_default(), conditions, faults }
    }

    /// What each condition makes of the request.
    pub(super) fn conditions(
        &self,
        compiled: &CompiledConditions,
        object: &Object<'_>,
        kind: EntryKind,
    ) -> Vec<Asked> {
        if matches!(kind, EntryKind::Full | EntryKind::Other) {
            return Vec::new();
        }
        let texts = object.conditions.unwrap_or_default();
        let outcomes = compiled.explain(texts, self.view);
        let told = outcomes.into_iter().map(|outcome| {
            let text = texts.get(outcome.index);
            let secret = text.is_some_and(is_secret_condition);
            let (got, fault) = match outcome.got {
                Got::Value(value) if secret && !value.is_empty() => (Some(MASK.to_owned()), None),
                Got::Value(value) => (Some(value), None),
                Got::Missing => (None, None),
                Got::Time(time) => (Some(time.to_string()), None),
                Got::Unusable(_) if secret => (None, Some("it cannot be used".to_owned())),
                Got::Unusable(fault) => (None, Some(fault.to_string())),
            };
            let wanted = text.and_then(|text| text.param_value.as_deref()).unwrap_or_default();
            Asked {
                param: text.map_or_else(|| "a condition of before".to_owned(), param),
                operator: text.map(|text| text.operator.clone()).unwrap_or_default(),
                wanted: if secret && !wanted.is_empty() { MASK } else { wanted }.to_owned(),
                got,
                ok: outcome.matched,
                skipped: outcome.skipped,
                fault,
            }
        });
        told.collect()
    }
}

/// What is not in force of an object, to follow a text.
pub(super) fn faults(object: &Object<'_>) -> String {
    let texts: Vec<&str> = object.faults.iter().map(|fault| fault.text.as_str()).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join("; ")) }
}

/// Where a condition looks, in words.
fn param(text: &Condition) -> String {
    let named = matches!(text.param_type.as_str(), "header" | "query" | "cookie" | "post");
    match text.param_name.as_deref().filter(|name| named && !name.is_empty()) {
        Some(name) => format!("{} {name}", text.param_type),
        None => text.param_type.clone(),
    }
}

/// Whether what a condition looks at may be a secret.
fn is_secret_condition(text: &Condition) -> bool {
    let name = text.param_name.as_deref().unwrap_or_default();
    match text.param_type.as_str() {
        "cookie" => true,
        "header" => name.parse().map_or_else(|_| is_secret(name), |name| is_secret_header(&name)),
        "query" => is_secret_parameter(name),
        _ => false,
    }
}

/// The condition that settles it.
fn first_failure(entry: &Entry, conditions: &[Asked]) -> String {
    if entry.conditions.mode() == MatchMode::Or {
        return match conditions.len() {
            0 => "needs any of its conditions, and has none".to_owned(),
            1 => "its condition does not hold".to_owned(),
            count => format!("none of its {count} conditions holds"),
        };
    }
    let failed = conditions.iter().position(|asked| !asked.ok);
    let Some((at, asked)) = failed.and_then(|at| Some((at, conditions.get(at)?))) else {
        return "its conditions do not hold".to_owned();
    };
    let number = at + 1;
    format!("condition {number} does not hold: {}", in_words(asked))
}

/// A condition and its outcome.
pub(super) fn in_words(asked: &Asked) -> String {
    let Asked { param, operator, wanted, .. } = asked;
    let mut text = format!("{param} {operator}");
    if operator != "isBlank" {
        text.push_str(&format!(" {wanted:?}"));
    }
    match (&asked.fault, &asked.got) {
        (Some(fault), _) => text.push_str(&format!(" can never hold: {fault}")),
        (None, Some(got)) => text.push_str(&format!(", got {got:?}")),
        (None, None) => text.push_str(", got nothing"),
    }
    text
}

/// What decides the place of an entry.
fn place(entry: &Entry) -> String {
    let Entry { sort, conditions, .. } = entry;
    match conditions.weight() {
        0 => format!("no conditions that must all hold, sort {sort}"),
        1 => format!("1 condition that must hold, sort {sort}"),
        weight => format!("{weight} conditions that must all hold, sort {sort}"),
    }
}

/// By which rule of precedence `first` comes before `other`.
pub(super) fn before(first: &Entry, other: &Entry) -> String {
    let weights = (first.conditions.weight(), other.conditions.weight());
    if weights.0 != weights.1 {
        return format!("more conditions that must all hold ({} against {})", weights.0, weights.1);
    }
    if first.sort != other.sort {
        return format!("a lower sort ({} against {})", first.sort, other.sort);
    }
    "a lower id, the rest being equal".to_owned()
}
