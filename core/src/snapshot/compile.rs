//! From plain objects to parts, with the rules for what cannot be compiled.
//!
//! A handle that does not compile keeps the last good one; with none, a guard's object is *blocked*
//! (requests it could be meant for are refused) and any other is left out. A condition that does
//! not compile never holds; a guard's object keeps its last good conditions, or is blocked.

use std::fmt::Display;
use std::sync::Arc;

use super::part::{RuleHead, RulePart, SelectorHead, SelectorPart};
use crate::chain::{Handle, HandleFault, Plugin, RuleParts};
use crate::condition::{CompileFault, Compiler};
use crate::matcher::{Entry, Index};
use crate::model::{PluginClass, Rule, Selector};
use crate::sync::{GatewayFault, Group};
use crate::upstream::UpstreamSet;

/// The plugin that objects are compiled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) name: &'a str,
    pub(super) class: PluginClass,
    pub(super) run: Option<&'a Arc<dyn Plugin>>,
}

/// Collects what could not be taken over.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<GatewayFault>);

impl Faults {
    pub(super) fn add(&mut self, group: Group, id: &str, plugin: &str, text: impl Display) {
        let fault =
            GatewayFault { group, id: id.into(), plugin: plugin.into(), text: text.to_string() };
        self.0.push(fault);
    }

    fn handle(&mut self, group: Group, id: &str, owner: Owner<'_>, faults: &[HandleFault]) {
        for fault in faults {
            self.add(group, id, owner.name, format_args!("handle {fault}"));
        }
    }

    fn conditions(&mut self, group: Group, id: &str, owner: Owner<'_>, faults: &[CompileFault]) {
        for fault in faults {
            self.add(group, id, owner.name, fault);
        }
    }
}

/// What a selector compiles to, before it is joined with rules and upstreams.
#[derive(Debug, Clone)]
pub(super) struct CompiledSelector {
    pub(super) entry: Arc<Entry>,
    pub(super) handle: Handle,
    pub(super) blocked: bool,
}

/// Compiles a selector; `None` leaves it out.
pub(super) fn selector(
    owner: Owner<'_>,
    selector: &Selector,
    before: Option<&CompiledSelector>,
    compiler: &mut Compiler,
    faults: &mut Faults,
) -> Option<CompiledSelector> {
    let (entry, condition_faults) = Entry::of_selector(selector, compiler);
    faults.conditions(Group::Selector, &selector.id, owner, &condition_faults);
    let guard = owner.class == PluginClass::Guard;
    let conditions_bad = guard && !condition_faults.is_empty();
    let handle = match owner.run {
        None => Ok(Handle::none()),
        Some(plugin) => plugin.compile_selector(selector.handle.as_deref().unwrap_or_default()),
    };
    let good_before = before.filter(|before| !before.blocked);
    match handle {
        Ok(handle) if !conditions_bad => {
            Some(CompiledSelector { entry: Arc::new(entry), handle, blocked: false })
        }
        result => {
            if let Err(handle_faults) = &result {
                faults.handle(Group::Selector, &selector.id, owner, handle_faults);
            }
            match good_before {
                Some(before) => Some(kept(before, entry, conditions_bad)),
                None if guard => Some(CompiledSelector {
                    entry: Arc::new(entry),
                    handle: Handle::none(),
                    blocked: true,
                }),
                None => None,
            }
        }
    }
}

/// The last good handle with the new conditions, or, where those are the fault, the last good both.
/// Whether it is enabled is always taken over: switching a broken object off must work.
fn kept(before: &CompiledSelector, new: Entry, conditions_bad: bool) -> CompiledSelector {
    let entry = if conditions_bad {
        Entry { enabled: new.enabled, sort: new.sort, ..(*before.entry).clone() }
    } else {
        new
    };
    CompiledSelector { entry: Arc::new(entry), handle: before.handle.clone(), blocked: false }
}

/// Compiles a rule; `None` leaves it out.
pub(super) fn rule(
    owner: Owner<'_>,
    rule: &Rule,
    before: Option<&Arc<RulePart>>,
    compiler: &mut Compiler,
    faults: &mut Faults,
) -> Option<Arc<RulePart>> {
    let (entry, condition_faults) = Entry::of_rule(rule, compiler);
    faults.conditions(Group::Rule, &rule.id, owner, &condition_faults);
    let guard = owner.class == PluginClass::Guard;
    let conditions_bad = guard && !condition_faults.is_empty();
    let parts = match owner.run {
        None => Ok(RuleParts::default()),
        Some(plugin) => plugin.compile_rule(rule.handle.as_deref().unwrap_or_default()),
    };
    let part = |parts, entry: Entry, blocked| {
        Some(Arc::new(RulePart {
            head: Arc::new(RuleHead {
                id: Arc::clone(&entry.id),
                name: rule.name.as_deref().unwrap_or_default().into(),
                parts,
            }),
            entry,
            blocked,
            logged: rule.logged,
        }))
    };
    match parts {
        Ok(parts) if !conditions_bad => part(parts, entry, false),
        result => {
            if let Err(handle_faults) = &result {
                faults.handle(Group::Rule, &rule.id, owner, handle_faults);
            }
            match before.filter(|before| !before.blocked) {
                Some(before) => {
                    let parts = before.head.parts.clone();
                    let entry = if conditions_bad {
                        let (enabled, sort) = (entry.enabled, entry.sort);
                        Entry { enabled, sort, ..before.entry.clone() }
                    } else {
                        entry
                    };
                    part(parts, entry, false)
                }
                None if guard => part(RuleParts::default(), entry, true),
                None => None,
            }
        }
    }
}

/// Joins a selector with its rules and upstreams.
pub(super) fn join(
    owner: Owner<'_>,
    selector: &Selector,
    compiled: &CompiledSelector,
    rules: Index<Arc<RulePart>>,
    upstreams: Arc<UpstreamSet>,
) -> SelectorPart {
    let parts = owner.run.map(|plugin| plugin.default_rule()).unwrap_or_default();
    SelectorPart {
        head: Arc::new(SelectorHead {
            id: Arc::clone(&compiled.entry.id),
            name: selector.name.as_deref().unwrap_or_default().into(),
            handle: compiled.handle.clone(),
            upstreams,
        }),
        entry: Arc::clone(&compiled.entry),
        logged: selector.logged,
        continued: selector.continued,
        rules,
        default_rule: Arc::new(RuleHead { id: "default_rule".into(), name: "".into(), parts }),
    }
}
