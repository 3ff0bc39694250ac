//! `shenyu.plugins.*`: which plugins take part.

use std::collections::BTreeMap;

use longmen_core::config::{KeySpec, Kind, Notice, Reader, Section, uniform};
use longmen_core::setting_words;

/// What happens to a request that an enabled guard would have to judge and this gateway does not
/// have that guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// It is refused with 503.
    Refuse,
    /// It passes.
    Ignore,
}

setting_words!(OnMissing { "refuse" => Self::Refuse, "ignore" => Self::Ignore });

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Plugins",
    about: "A plugin's name may be written in any way that relaxed names allow: `rate-limiter` and \
            `rateLimiter` are one.",
    keys: &[
        KeySpec::new(
            "shenyu.plugins.onMissing",
            Kind::Choice(OnMissing::WORDS),
            "refuse",
            "What happens to requests that a guard plugin would have to judge which this gateway does not have.",
        ),
        KeySpec::new(
            "shenyu.plugins.*.enabled",
            Kind::Bool,
            "",
            "False leaves the plugin out of this gateway, whatever the admin says.",
        )
        .computed("true"),
        KeySpec::inert(
            "shenyu.plugins.response.rpc-message-writer",
            "answers of rpc plugins are always written",
        ),
        KeySpec::inert(
            "shenyu.mcp.server.enabled",
            "the switch is `shenyu.plugins.mcp.server.enabled`",
        ),
        KeySpec::pending("shenyu.extPlugin.path", Kind::File, "plugins loaded from files"),
        KeySpec::inert("shenyu.extPlugin.*", "plugins are built in"),
        KeySpec::inert("shenyu.sharedPool.*", "Java's thread pools"),
        KeySpec::inert("shenyu.scheduler.*", "Java's thread pools"),
        KeySpec::inert("shenyu.ribbon.*", "left over in ShenYu"),
        KeySpec::inert("shenyu.springCloudCache.*", "left over in ShenYu"),
    ],
};

/// Which plugins take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginsConfig {
    /// What happens to requests that a missing guard would have to judge.
    pub on_missing: OnMissing,
    /// What the file says of single plugins, by uniform name.
    pub switches: BTreeMap<String, bool>,
}

impl PluginsConfig {
    /// Whether the plugin of this wire name, such as `rateLimiter`, takes part.
    pub fn is_enabled(&self, plugin: &str) -> bool {
        let name = uniform(plugin);
        let switch = |name: &str| self.switches.get(name).copied();
        switch(&name).or_else(|| property_name(&name).and_then(switch)).unwrap_or(true)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let on_missing = reader.get("shenyu.plugins.onMissing");
        if on_missing == OnMissing::Ignore {
            reader.note(Notice::warn(
                "shenyu.plugins.onMissing is ignore: requests pass guards that this gateway does \
                 not have",
            ));
        }
        let entries: Vec<(String, bool)> = reader.entries("shenyu.plugins.*.enabled");
        let switches = entries.into_iter().map(|(name, on)| (uniform(&name), on)).collect();
        Self { on_missing, switches }
    }
}

/// The reference's property name where it is not the plugin's own, both in uniform spelling.
fn property_name(plugin: &str) -> Option<&'static str> {
    Some(match plugin {
        "cryptorrequest" | "cryptorresponse" => "cryptor",
        "dubbo" => "apachedubbo",
        "airequesttransformer" => "aitransformerrequest",
        "airesponsetransformer" => "aitransformerresponse",
        _ => return None,
    })
}
