//! Where an entry is looked up: what its conditions demand of a request.

use smallvec::SmallVec;

use super::hash;
use super::path::{DEPTH, split};
use crate::condition::{AntPattern, Hint, Literals, PathPattern, PathTest, Source, Step};
use crate::matcher::{Entry, EntryKind, Planted, planted};
use crate::model::MatchMode;

/// An entry that would be looked up in more places is a candidate for every path.
const MOST_PLACES: usize = 64;
/// Of the beginning of a segment this many bytes are looked at.
pub(super) const MOST_BEGINNING: usize = 63;

/// A set of paths, by their segments that are not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathKey {
    /// The first segments.
    pub(super) tokens: SmallVec<[Token; 6]>,
    /// What follows.
    pub(super) end: End,
}

/// One segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// The text with this hash.
    Literal(u64),
    /// Any text.
    Any,
}

/// What follows the first segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing.
    Exact,
    /// Anything, also nothing.
    Prefix,
    /// A segment that begins with a text of this length and hash; then anything.
    Begins(usize, u64),
    /// Anything, and the whole path holds a text of one of [`HELD`] bytes and this hash.
    Holds(Held, u64),
}

/// Which of [`HELD`].
pub(super) type Held = usize;

/// The lengths of texts that are looked for anywhere in a path.
pub(super) const HELD: [usize; 3] = [3, 4, 6];

/// A value that must be equal to something, other than the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Facet {
    /// The last segment of the path that is not empty.
    LastSegment,
    /// What a condition can name.
    Of(Box<Source>),
}

/// The places where an entry is looked up: every request that it applies to has a path in one of
/// them. Empty for an entry that never applies. No place is listed twice.
pub(super) fn places(entry: &Entry) -> Vec<PathKey> {
    let conditions = &entry.conditions;
    if !entry.enabled && !planted(Planted::DisabledKept) {
        return Vec::new();
    }
    let mut keys = match (entry.kind, conditions.mode()) {
        (EntryKind::Full | EntryKind::Other, _) => vec![PathKey::all()],
        (EntryKind::Custom, _) if conditions.is_empty() => Vec::new(),
        (EntryKind::Custom | EntryKind::Rule, MatchMode::And) => all_of(conditions.hints()),
        (EntryKind::Custom | EntryKind::Rule, MatchMode::Or) => any_of(conditions.hints()),
    };
    if keys.len() > MOST_PLACES || keys.iter().any(PathKey::is_all) {
        return vec![PathKey::all()];
    }
    let mut at = 0;
    while at < keys.len() {
        if keys[..at].contains(&keys[at]) {
            keys.swap_remove(at);
        } else {
            at += 1;
        }
    }
    keys
}

/// The equalities that every request the entry applies to meets.
pub(super) fn facets(entry: &Entry) -> SmallVec<[(Facet, u64); 4]> {
    let conditional = matches!(entry.kind, EntryKind::Custom | EntryKind::Rule);
    if !conditional || entry.conditions.mode() == MatchMode::Or {
        return SmallVec::new();
    }
    let facet = |hint: Hint<'_>| match hint {
        Hint::Equals(source, text) => {
            Some((Facet::Of(Box::new(source.clone())), hash::of(text.as_bytes())))
        }
        Hint::Path(PathTest::Ant([pattern])) => {
            let last = pattern.last_after_rest()?;
            Some((Facet::LastSegment, hash::of(last.as_bytes())))
        }
        Hint::Path(_) | Hint::Never | Hint::Unknown => None,
    };
    entry.conditions.hints().filter_map(facet).collect()
}

/// One condition is enough to look for; the one that narrows most is taken.
fn all_of<'c>(hints: impl Iterator<Item = Hint<'c>>) -> Vec<PathKey> {
    let mut best: Option<(usize, Vec<PathKey>)> = None;
    for hint in hints {
        let keys = match hint {
            Hint::Never => return Vec::new(),
            Hint::Path(test) => of_test(test),
            Hint::Equals(..) | Hint::Unknown => None,
        };
        let Some(keys) = keys.filter(|keys| keys.len() <= MOST_PLACES) else { continue };
        let worth = keys.iter().map(PathKey::worth).min().unwrap_or_default();
        if best.as_ref().is_none_or(|(known, _)| worth > *known) {
            best = Some((worth, keys));
        }
    }
    best.map_or_else(|| vec![PathKey::all()], |(_, keys)| keys)
}

fn any_of<'c>(hints: impl Iterator<Item = Hint<'c>>) -> Vec<PathKey> {
    let mut all = Vec::new();
    for hint in hints {
        let keys = match hint {
            Hint::Never => continue,
            Hint::Path(test) => of_test(test),
            Hint::Equals(..) | Hint::Unknown => None,
        };
        let Some(keys) = keys else { return vec![PathKey::all()] };
        all.extend(keys);
        if planted(Planted::OrAsAnd) {
            break;
        }
    }
    all
}

/// The places of the paths that pass a test; `None` where it tells nothing.
fn of_test(test: PathTest<'_>) -> Option<Vec<PathKey>> {
    let mut keys = Vec::new();
    match test {
        PathTest::Ant(patterns) => {
            let wanted = if planted(Planted::FirstPatternOnly) { 1 } else { patterns.len() };
            for pattern in &patterns[..wanted.min(patterns.len())] {
                let from = keys.len();
                PathKey::of_steps(AntPattern::steps(pattern), &mut keys);
                // Where not even the first segment is known, some text later on may be.
                for key in &mut keys[from..] {
                    if key.worth() == 0 {
                        *key = key.clone().holding(pattern.core());
                    }
                }
            }
        }
        PathTest::Pattern(pattern) => PathKey::of_steps(PathPattern::steps(pattern), &mut keys),
        PathTest::Equals(text) => {
            PathKey::of_steps(split(text.as_bytes()).map(ByteStep::Literal), &mut keys);
        }
        PathTest::StartsWith(text) => keys.push(PathKey::of_beginning(text)),
        PathTest::Regex(regex) => {
            let Literals { head, core } = Literals::of(regex.as_str());
            // A core that the beginning holds anyway tells nothing more.
            let core = if head.contains(&core) { "" } else { &core };
            keys.push(PathKey::of_beginning(&head).holding(core));
        }
        PathTest::Contains(text) | PathTest::EndsWith(text) => {
            keys.push(PathKey::all().holding(text));
        }
        PathTest::Other => return None,
    }
    Some(keys)
}

/// A step with its text as bytes.
enum ByteStep<'p> {
    Literal(&'p [u8]),
    One(&'p [u8]),
    Optional,
    Rest,
}

impl<'p> From<Step<'p>> for ByteStep<'p> {
    fn from(step: Step<'p>) -> Self {
        match step {
            Step::Literal(text) => Self::Literal(text.as_bytes()),
            Step::One(text) => Self::One(text.as_bytes()),
            Step::Optional => Self::Optional,
            Step::Rest => Self::Rest,
        }
    }
}

impl PathKey {
    /// Every path.
    fn all() -> Self {
        Self { tokens: SmallVec::new(), end: End::Prefix }
    }

    /// Whether it is every path.
    fn is_all(&self) -> bool {
        self.tokens.is_empty() && self.end == End::Prefix
    }

    fn of_steps<'p, S: Into<ByteStep<'p>>>(steps: impl Iterator<Item = S>, keys: &mut Vec<Self>) {
        let mut tokens = SmallVec::new();
        let mut steps = steps.map(Into::into).peekable();
        while let Some(step) = steps.next() {
            if tokens.len() == DEPTH {
                keys.push(Self { tokens, end: End::Prefix });
                return;
            }
            match step {
                ByteStep::Literal(text) => tokens.push(Token::Literal(hash::of(text))),
                ByteStep::One(text) if !text.is_empty() && steps.peek().is_none() => {
                    keys.push(Self { tokens, end: End::begins(text) });
                    return;
                }
                ByteStep::One(_) => tokens.push(Token::Any),
                ByteStep::Optional => {
                    if !planted(Planted::StarNeverEmpty) {
                        keys.push(Self { tokens: tokens.clone(), end: End::Exact });
                    }
                    tokens.push(Token::Any);
                }
                ByteStep::Rest => {
                    if planted(Planted::RestNeverEmpty) {
                        tokens.push(Token::Any);
                    }
                    keys.push(Self { tokens, end: End::Prefix });
                    return;
                }
            }
        }
        keys.push(Self { tokens, end: End::Exact });
    }

    /// The paths that begin with `text`.
    fn of_beginning(text: &str) -> Self {
        let (complete, partial) = text.rsplit_once('/').unwrap_or(("", text));
        let mut tokens: SmallVec<[Token; 6]> = SmallVec::new();
        for segment in split(complete.as_bytes()) {
            if tokens.len() == DEPTH {
                return Self { tokens, end: End::Prefix };
            }
            tokens.push(Token::Literal(hash::of(segment)));
        }
        let end = if partial.is_empty() { End::Prefix } else { End::begins(partial.as_bytes()) };
        Self { tokens, end }
    }

    /// The same, of paths that hold a text besides. Only the end of the text is looked for.
    fn holding(self, text: &str) -> Self {
        let fitting = HELD.iter().rposition(|length| *length <= text.len());
        match (self.end, fitting) {
            (End::Prefix, Some(held)) => {
                let end = &text.as_bytes()[text.len() - HELD[held]..];
                Self { end: End::Holds(held, hash::of(end)), ..self }
            }
            _ => self,
        }
    }

    /// How much it narrows, roughly.
    fn worth(&self) -> usize {
        let literals = self.tokens.iter().filter(|token| matches!(token, Token::Literal(_)));
        let end = match self.end {
            End::Exact => 1,
            End::Prefix => 0,
            End::Holds(..) => 2,
            End::Begins(..) => 3,
        };
        literals.count() * 4 + end
    }
}

impl End {
    fn begins(text: &[u8]) -> Self {
        let text = &text[..text.len().min(MOST_BEGINNING)];
        Self::Begins(text.len(), hash::of(text))
    }
}
