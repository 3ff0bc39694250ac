//! The immutable state a gateway serves from, and how it comes about.
//!
//! Frames change a [`ConfigState`], the plain objects by key; that is a pure function and says what
//! it touched ([`Dirty`]). A [`Publisher`] compiles what was touched, puts it together with the
//! untouched parts of the last [`Snapshot`], and publishes the result by one pointer store
//! ([`SnapshotStore`]). A request loads the pointer once.

mod build;
mod compile;
mod metadata;
mod part;
mod publish;
pub mod saved;
mod state;
mod store;
mod upstreams;

pub use metadata::MetadataIndex;
pub use part::{
    PluginPart, Position, RuleHead, RulePart, Selected, SelectorHead, SelectorKey, SelectorPart,
    Snapshot,
};
pub use publish::{MatchingOptions, Published, Publisher, PublisherOptions};
pub use state::{ConfigState, Dirty, MissingPlugin, UpstreamMode};
pub use store::SnapshotStore;

#[cfg(test)]
mod tests;
