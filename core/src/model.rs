//! The domain model, with the member names of the wire.
//!
//! Each type is at once what travels between admin and gateway and what the rest of the code works
//! with: there is no second mirror of it. Names are the reference's, spelled as it spells them
//! (`logged` on selectors, `loged` on rules); reading is as lenient as the reference's reader:
//! unknown members are ignored, absent or null members take their default, integers may come as
//! `7`, `7.0` or `"7"`, booleans as `true` or `"true"`, and strings as numbers. What the reference
//! refuses is refused: `7.5` for an integer, `1` for a boolean, an object for a string.
//!
//! Writing omits members that are not set, as the reference does; compare as parsed JSON.
//!
//! Source: the wire specification of ShenYu 2.7.1, data objects and reader rules.

mod app_auth;
mod condition;
mod lenient;
mod level;
mod metadata;
mod plugin;
mod proxy_selector;
mod rule;
mod selector;
mod upstream;

pub use app_auth::{AppAuth, AppParam, AppPath, ProxyApiKey};
pub use condition::{Condition, MatchMode};
pub use lenient::{JsonKind, bool_or_default, i32_or_default, opt_string, string};
pub use level::Level;
pub use metadata::MetaData;
pub use plugin::{Plugin, PluginClass};
pub use proxy_selector::ProxySelector;
pub use rule::Rule;
pub use selector::{Selector, SelectorType};
pub use upstream::{Upstream, UpstreamList, UpstreamProps, UpstreamStatus};

/// The namespace that exists in every installation; stock consoles and clients have it built in.
pub const DEFAULT_NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";

/// The longest identifier that is accepted from outside, in bytes of UTF-8.
pub const MAX_ID_BYTES: usize = 128;

#[cfg(test)]
mod tests;
