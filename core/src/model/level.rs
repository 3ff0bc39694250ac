//! The two levels of matching.

/// One of the two levels on which a plugin matches a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// The first: selectors.
    Selector,
    /// The second: the rules of a selector.
    Rule,
}
