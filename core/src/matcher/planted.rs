//! Faults that tests switch on, to see that the tests of the matcher find them.
//!
//! Outside tests this is nothing: the question is answered at compile time.

/// A fault that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// Between entries of equal weight and sort the one met first wins, whatever its id.
    NoTieBreak,
    /// `**` wants at least one segment.
    RestNeverEmpty,
    /// A star at the end wants a segment.
    StarNeverEmpty,
    /// Empty segments of a path count.
    EmptySegmentsCount,
    /// Escapes are not undone for `pathPattern`.
    EscapesKept,
    /// A character that may be absent counts as the beginning of a regular expression.
    OptionalCharKept,
    /// An OR list is looked up by its first condition alone, as if the others had to hold too.
    OrAsAnd,
    /// Of several patterns in one condition only the first is looked up.
    FirstPatternOnly,
    /// A disabled entry stays in the index.
    DisabledKept,
    /// The more specific place wins, whatever the precedence.
    SpecificFirst,
    /// Entries without the equality that a list is divided by are forgotten.
    RestOfSplitLost,
    /// A match cache is used although a candidate looks at more than the path.
    CacheIgnoresOtherInputs,
    /// A match cache outlives an edit of its index.
    CacheOutlivesEdit,
    /// The filter over a list of regular expressions is not compiled anew after an edit.
    OldFilterKept,
}

/// Whether the fault is planted.
#[cfg(not(test))]
#[inline]
pub(crate) const fn planted(_: Planted) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// Whether the fault is planted.
#[cfg(test)]
pub(crate) fn planted(fault: Planted) -> bool {
    PLANTED.get() == Some(fault)
}

/// Runs `test` with the fault planted in this thread.
#[cfg(test)]
pub(crate) fn with_planted<T>(fault: Planted, test: impl FnOnce() -> T) -> T {
    PLANTED.set(Some(fault));
    let result = test();
    PLANTED.set(None);
    result
}
