//! How the configuration in force is compiled and looked up, from the gateway's settings.

use longmen_core::matcher::{IndexOptions, MatchCacheOptions};
use longmen_core::snapshot::{MatchingOptions, MissingPlugin, PublisherOptions, UpstreamMode};
use longmen_core::upstream::EndpointRegistry;

use crate::config::{CacheConfig, GatewayConfig, OnMissing, UpstreamsMode};

pub(super) fn publisher_options(
    config: &GatewayConfig,
    upstreams: &EndpointRegistry,
) -> PublisherOptions {
    PublisherOptions {
        on_missing: match config.plugins.on_missing {
            OnMissing::Refuse => MissingPlugin::Refuse,
            OnMissing::Ignore => MissingPlugin::Ignore,
        },
        upstreams: match config.sync.upstreams {
            UpstreamsMode::Auto => UpstreamMode::Auto,
            UpstreamsMode::Replace => UpstreamMode::Replace,
            UpstreamsMode::Merge => UpstreamMode::Merge,
        },
        zone: config.time_zone.time_zone(),
        endpoints: upstreams.clone(),
        matching: MatchingOptions {
            selectors: index_options(config, config.match_cache.selector),
            rules: index_options(config, config.match_cache.rule),
        },
    }
}

fn index_options(config: &GatewayConfig, cache: CacheConfig) -> IndexOptions {
    let cache = MatchCacheOptions {
        enabled: cache.enabled,
        initial_capacity: cache.initial_capacity,
        maximum_size: cache.maximum_size,
    };
    let indexed = IndexOptions { cache, ..IndexOptions::default() };
    if config.match_index.enabled {
        indexed
    } else {
        IndexOptions { linear_up_to: usize::MAX, ..indexed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(yaml: &str) -> MatchingOptions {
        let config = GatewayConfig::from_yaml(yaml).unwrap();
        publisher_options(&config, &EndpointRegistry::default()).matching
    }

    #[test]
    fn without_index_any_number_is_asked_one_by_one() {
        let usual = matching("{}");
        assert_eq!(usual, matching("shenyu.matchIndex.enabled: on"));
        assert_eq!(usual, MatchingOptions::default());
        let off = matching("shenyu.matchIndex.enabled: off");
        for (off, usual) in [(off.selectors, usual.selectors), (off.rules, usual.rules)] {
            assert_eq!(off, IndexOptions { linear_up_to: usize::MAX, ..usual });
        }
    }
}
