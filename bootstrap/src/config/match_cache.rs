//! `shenyu.selectorMatchCache.*` and `shenyu.ruleMatchCache.*`, older spellings included.

use longmen_core::config::{COUNT, KeySpec, Kind, Reader, Section};

const TRIE: &str = "the index is always on, but for shenyu.matchIndex.enabled, and needs no size";

/// The keys of the match caches.
pub(super) const SECTION: Section = Section {
    title: "Match caches",
    about: "A cache belongs to the index whose answers it keeps, and goes with it. It is asked only where \
            finding the answer costs more, mostly with many regular expressions; most tables of routes \
            never use one. No setting changes which selector or rule is found. The spellings of ShenYu \
            2.5 are read too.",
    keys: &[
        KeySpec::new(
            "shenyu.selectorMatchCache.cache.enabled",
            Kind::Bool,
            "true",
            "Whether the choice of a selector is remembered.",
        )
        .or(&[
            "shenyu.matchCache.selectorEnabled",
            "shenyu.matchCache.selector.selectorEnabled",
            "shenyu.matchCache.selector.enabled",
        ]),
        KeySpec::new(
            "shenyu.selectorMatchCache.cache.maximumSize",
            COUNT,
            "10000",
            "The most entries of one such cache.",
        )
        .or(&["shenyu.matchCache.selector.maximumSize"]),
        KeySpec::new(
            "shenyu.ruleMatchCache.cache.enabled",
            Kind::Bool,
            "true",
            "Whether the choice of a rule is remembered.",
        )
        .or(&[
            "shenyu.matchCache.enabled",
            "shenyu.matchCache.rule.enabled",
            "shenyu.matchCache.rule.ruleEnabled",
        ]),
        KeySpec::new(
            "shenyu.ruleMatchCache.cache.maximumSize",
            COUNT,
            "10000",
            "The most entries of one such cache.",
        )
        .or(&["shenyu.matchCache.rule.maximumSize"]),
        KeySpec::new(
            "shenyu.selectorMatchCache.cache.initialCapacity",
            COUNT,
            "0",
            "Entries to make room for at once; a cache grows by itself.",
        )
        .or(&["shenyu.matchCache.selector.initialCapacity"]),
        KeySpec::new(
            "shenyu.ruleMatchCache.cache.initialCapacity",
            COUNT,
            "0",
            "Entries to make room for at once; a cache grows by itself.",
        )
        .or(&["shenyu.matchCache.rule.initialCapacity"]),
        KeySpec::inert("shenyu.matchCache.maxFreeMemory", "the caches are bounded by entries"),
        KeySpec::inert("shenyu.selectorMatchCache.trie.*", TRIE),
        KeySpec::inert("shenyu.ruleMatchCache.trie.*", TRIE),
        KeySpec::inert("shenyu.trie.*", TRIE),
    ],
};

/// The caches of the choice of selectors and rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchCacheConfig {
    /// Of selectors; one cache for each plugin's index.
    pub selector: CacheConfig,
    /// Of rules; one cache for each selector's index.
    pub rule: CacheConfig,
}

/// One kind of match cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// Entries to make room for at once.
    pub initial_capacity: usize,
    /// The most entries.
    pub maximum_size: usize,
}

impl MatchCacheConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            selector: CacheConfig {
                enabled: reader.get("shenyu.selectorMatchCache.cache.enabled"),
                initial_capacity: reader.get("shenyu.selectorMatchCache.cache.initialCapacity"),
                maximum_size: reader.get("shenyu.selectorMatchCache.cache.maximumSize"),
            },
            rule: CacheConfig {
                enabled: reader.get("shenyu.ruleMatchCache.cache.enabled"),
                initial_capacity: reader.get("shenyu.ruleMatchCache.cache.initialCapacity"),
                maximum_size: reader.get("shenyu.ruleMatchCache.cache.maximumSize"),
            },
        }
    }
}
