//! What a path pattern asks of the segments of a path, for those who build an index over paths.

use super::glob::Glob;

/// One step of a pattern over the segments of a path that are not empty.
///
/// A pattern takes no path that its steps do not take; the other way round they may take more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    /// A segment that is this text.
    Literal(&'p str),
    /// One segment that begins with this text, which may be empty.
    One(&'p str),
    /// At the end: one segment, or none.
    Optional,
    /// Any number of segments; nothing is said of what follows.
    Rest,
}

/// The literal text that `pattern`, one segment of a pattern, begins with.
pub(super) fn literal_head<'p>(glob: &Glob, pattern: &'p str) -> &'p str {
    match glob {
        // What a replaced character stands for is not known.
        Glob::Tokens(_) if !pattern.contains('\u{fffd}') => {
            let end = pattern.find(['?', '*', '{']).unwrap_or(pattern.len());
            &pattern[..end]
        }
        Glob::Tokens(_) | Glob::Regex(_) => "",
    }
}
