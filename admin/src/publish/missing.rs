//! Plugins that are switched on and that a connected gateway does not have.
//!
//! A gateway does not say what it has. Two things are known of ours: they run the plugins of their
//! release, which is this one's as far as anybody can tell; and what they could not take over they
//! name when they acknowledge a version. Stock gateways say nothing.

use longmen_core::chain::Registry;
use longmen_core::sync::{GatewayFault, Group};

use super::gateways::GatewayView;

/// Warns of each of `plugins`, which were just switched on in `namespace`, that this release does
/// not have, if gateways of ours are connected there. Nothing to say is the rule.
pub(super) fn warn_of_switched_on<'a>(
    registry: &Registry,
    connected: &[GatewayView],
    namespace: &str,
    plugins: impl IntoIterator<Item = &'a str>,
) {
    let ours: Vec<String> = ours(connected).collect();
    if ours.is_empty() {
        return;
    }
    for plugin in lacked(registry, plugins) {
        tracing::warn!(
            plugin,
            namespace,
            gateways = ours.join(", "),
            "a plugin is switched on that this release does not have: these gateways leave it out, \
             and what it guards they refuse"
        );
    }
}

/// Adds to the faults of one of ours those of `enabled`, the plugins that are switched on in its
/// namespace, that this release does not have, unless it named them itself.
pub(crate) fn add_faults(registry: &Registry, faults: &mut Vec<GatewayFault>, enabled: &[String]) {
    for name in lacked(registry, enabled.iter().map(String::as_str)) {
        if faults.iter().any(|fault| fault.group == Group::Plugin && fault.id == name) {
            continue;
        }
        faults.push(GatewayFault {
            group: Group::Plugin,
            id: name.to_owned(),
            plugin: name.to_owned(),
            text: "this release does not have the plugin: the gateway leaves it out, or refuses \
                   what it guards"
                .to_owned(),
        });
    }
}

/// Warns of what a gateway could not take over of plugins, unless it had said so `before`.
pub(super) fn warn_of_faults(view: &GatewayView, before: &[GatewayFault]) {
    for fault in fresh(&view.faults, before) {
        tracing::warn!(
            plugin = fault.plugin,
            namespace = view.namespace,
            gateway = view.address(),
            "a gateway could not take over a plugin: {}",
            fault.text
        );
    }
}

/// The addresses of those that are ours.
fn ours(connected: &[GatewayView]) -> impl Iterator<Item = String> {
    connected.iter().filter(|view| view.kind == "longmen").map(GatewayView::address)
}

/// Those that the registry does not have.
fn lacked<'a>(
    registry: &Registry,
    plugins: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    plugins.into_iter().filter(|name| registry.get(name).is_none())
}

/// Faults of plugins as such that were not there before.
pub(super) fn fresh<'a>(
    faults: &'a [GatewayFault],
    before: &[GatewayFault],
) -> impl Iterator<Item = &'a GatewayFault> {
    faults.iter().filter(|fault| fault.group == Group::Plugin && !before.contains(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(group: Group, id: &str, text: &str) -> GatewayFault {
        GatewayFault { group, id: id.into(), plugin: id.into(), text: text.into() }
    }

    #[test]
    fn what_this_release_lacks_is_found_by_name() {
        let registry = longmen_plugins::registry();
        let found: Vec<&str> = lacked(&registry, ["divide", "mock-made-up", "rewrite"]).collect();
        assert_eq!(found, ["mock-made-up"]);
    }

    #[test]
    fn only_gateways_of_ours_are_named() {
        let view = |host: &str, kind| GatewayView {
            kind,
            host: host.to_owned(),
            ..super::super::gateways::tests::view(1)
        };
        let all = [view("10.0.0.1", "longmen"), view("10.0.0.2", "stock")];
        assert_eq!(ours(&all).collect::<Vec<_>>(), ["10.0.0.1:9195"]);
    }

    #[test]
    fn what_is_switched_on_and_lacking_is_a_fault_of_gateways_of_ours() {
        let registry = longmen_plugins::registry();
        let on = ["divide", "made-up", "told"].map(str::to_owned);
        let own = fault(Group::Plugin, "told", "as the gateway says it");
        let mut faults = vec![own.clone()];
        add_faults(&registry, &mut faults, &on);
        assert_eq!(faults[0], own);
        let [_, added] = &faults[..] else { panic!("{faults:?}") };
        assert_eq!((added.group, added.id.as_str()), (Group::Plugin, "made-up"));
    }

    #[test]
    fn a_fault_is_told_once_and_a_new_one_again() {
        let (sign, waf) = (fault(Group::Plugin, "sign", "x"), fault(Group::Plugin, "waf", "x"));
        let rule = fault(Group::Rule, "1", "x");
        let first = [sign.clone(), rule.clone()];
        assert_eq!(fresh(&first, &[]).collect::<Vec<_>>(), [&sign]);
        assert_eq!(fresh(&first, &first).count(), 0);
        let later = [sign, rule, waf.clone()];
        assert_eq!(fresh(&later, &first).collect::<Vec<_>>(), [&waf]);
    }
}
