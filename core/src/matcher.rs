//! Choice of the selector and the rule that apply to a request.
//!
//! Precedence is a total order, the same for selectors and rules, with indexes and caches on or
//! off: the most AND conditions first (an OR list counts as none), then the lowest `sort` (absent
//! counts as 0), then the lowest id by bytes. Of those that match, the first in that order is used.
//! No falling back: once a selector is chosen, the rules of others are out of play.
//!
//! [`Linear`] asks one after the other. It is what small lists use, and what the [`Index`] is compared
//! with: it finds the same without asking all.
//!
//! Source: ShenYu 2.7.1, executed; the tie on id is ours, theirs depends on the order of arrival.

mod cache;
mod entry;
mod index;
mod linear;
mod map;
mod planted;
mod search;

pub use cache::MatchCacheOptions;
pub use entry::{Entry, EntryKind, Matchable, Precedence};
pub use index::{Considered, Index, IndexOptions};
pub use linear::{EntryOutcome, Linear, Verdict};
pub(crate) use map::Map;
pub(crate) use planted::{Planted, planted};
pub use search::{Live, Look, Search};

#[cfg(test)]
pub(crate) mod tests;
