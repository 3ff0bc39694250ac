//! `shenyu.matchIndex.enabled`: whether selectors and rules are looked up or asked one by one.

use longmen_core::config::{KeySpec, Kind, Notice, Reader, Section};

/// The key of the match index.
pub(super) const SECTION: Section = Section {
    title: "Match index",
    about: "Selectors and rules are looked up in an index by their conditions on the path. Whether it is on or off, the same ones are \
            found; off is meant for comparison, since the time of a request then grows with the number of rules.",
    keys: &[KeySpec::new(
        "shenyu.matchIndex.enabled",
        Kind::Bool,
        "true",
        "Whether the index is used; if not, selectors and rules are asked one after the other, in the order of precedence, and the \
         match caches are not used.",
    )],
};

/// The index of selectors and rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchIndexConfig {
    /// Whether it is used.
    pub enabled: bool,
}

impl MatchIndexConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let enabled: bool = reader.get("shenyu.matchIndex.enabled");
        if !enabled {
            reader.note(Notice::warn(
                "shenyu.matchIndex.enabled is false: every request is compared with one rule after the other",
            ));
        }
        Self { enabled }
    }
}
