//! The compiled conditions of one selector or rule.

use regex::Regex;

use super::predicate::{Predicate, Source, Test};
use super::{AntPattern, CompileFault, ContextField, PathPattern, RequestView};
use crate::model::MatchMode;

/// Conditions ready to be asked, joined by AND or OR.
#[derive(Debug, Clone)]
pub struct CompiledConditions {
    mode: MatchMode,
    weight: u32,
    inputs: Inputs,
    predicates: Box<[Predicate]>,
}

/// Which parts of a request a list of conditions reads: what a memo of its outcome would have to
/// be keyed by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inputs(u16);

/// What one condition asks of the path, for those who build an index over paths.
#[derive(Debug, Clone, Copy)]
pub enum PathTest<'c> {
    /// The path fits one of these Ant patterns.
    Ant(&'c [AntPattern]),
    /// The path fits this path pattern.
    Pattern(&'c PathPattern),
    /// The path is this text.
    Equals(&'c str),
    /// The path begins with this text.
    StartsWith(&'c str),
    /// The whole path fits this expression.
    Regex(&'c Regex),
    /// The path holds this text.
    Contains(&'c str),
    /// The path ends with this text.
    EndsWith(&'c str),
    /// Something else about the path.
    Other,
}

/// What one condition gives to those who look for candidates.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hint<'c> {
    /// It cannot be used and never holds.
    Never,
    /// It asks something of the path.
    Path(PathTest<'c>),
    /// It holds only where the value of that source is this text.
    Equals(&'c Source, &'c str),
    /// It may hold for any request.
    Unknown,
}

impl CompiledConditions {
    pub(super) fn new(match_mode: i32, predicates: Box<[Predicate]>) -> Self {
        // The reference counts conditions for code 0 alone, though other codes evaluate as AND.
        let counted = if match_mode == 0 { predicates.len() } else { 0 };
        let inputs = predicates.iter().fold(Inputs::default(), |all, p| all.and(inputs_of(p)));
        Self {
            mode: MatchMode::from_code(match_mode),
            weight: u32::try_from(counted).unwrap_or(u32::MAX),
            inputs,
            predicates,
        }
    }

    /// Whether the request meets the conditions. An empty list is met under AND and not under OR.
    ///
    /// Conditions are asked in order and no further than needed. Does not allocate for conditions
    /// on the path, except for wildcards of `pathPattern` over segments with escapes.
    #[must_use]
    pub fn matches<V: RequestView + ?Sized>(&self, view: &V) -> bool {
        match self.mode {
            MatchMode::And => self.predicates.iter().all(|predicate| predicate.holds(view)),
            MatchMode::Or => self.predicates.iter().any(|predicate| predicate.holds(view)),
        }
    }

    /// Whether a request with this path could meet the conditions, as far as its path tells.
    ///
    /// Conditions on anything else, and conditions that could not be compiled, count as possibly
    /// met. For guards that cannot run: what they might have applied to is refused.
    #[must_use]
    pub fn could_match_path(&self, path: &str) -> bool {
        match self.mode {
            MatchMode::And => self.predicates.iter().all(|predicate| predicate.could_hold(path)),
            MatchMode::Or => self.predicates.iter().any(|predicate| predicate.could_hold(path)),
        }
    }

    /// The number of conditions under AND, 0 under OR: the more, the higher the precedence.
    #[must_use]
    pub const fn weight(&self) -> u32 {
        self.weight
    }

    /// How the conditions are joined.
    #[must_use]
    pub const fn mode(&self) -> MatchMode {
        self.mode
    }

    /// The number of conditions, usable or not.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.predicates.len()
    }

    /// Whether there is no condition at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.predicates.is_empty()
    }

    /// Whether the outcome depends on the path alone. Also true of an empty list.
    #[must_use]
    pub fn path_only(&self) -> bool {
        self.inputs.path_only()
    }

    /// Which parts of a request are read.
    #[must_use]
    pub const fn inputs(&self) -> Inputs {
        self.inputs
    }

    /// The conditions that could not be compiled.
    pub fn faults(&self) -> impl Iterator<Item = &CompileFault> {
        self.predicates.iter().filter_map(|predicate| match &predicate.test {
            Test::Never(fault) => Some(&**fault),
            _ => None,
        })
    }

    /// What the conditions ask of the path, in order; conditions on anything else, and those that
    /// cannot be used, are left out.
    pub fn path_tests(&self) -> impl Iterator<Item = PathTest<'_>> {
        self.hints().filter_map(|hint| match hint {
            Hint::Path(test) => Some(test),
            Hint::Never | Hint::Equals(..) | Hint::Unknown => None,
        })
    }

    /// What each condition gives to those who look for candidates, in order.
    pub(crate) fn hints(&self) -> impl Iterator<Item = Hint<'_>> {
        self.predicates.iter().map(|predicate| match (&predicate.source, &predicate.test) {
            (_, Test::Never(_)) => Hint::Never,
            (_, Test::NowBefore(_) | Test::NowAfter(_)) => Hint::Unknown,
            (Source::Path, test) => Hint::Path(path_test(test)),
            (source, Test::Equals(text)) => Hint::Equals(source, text),
            _ => Hint::Unknown,
        })
    }

    pub(super) fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }
}

impl Inputs {
    /// The effective path.
    pub const PATH: Self = Self(1);
    /// A header.
    pub const HEADER: Self = Self(1 << 1);
    /// A query parameter.
    pub const QUERY: Self = Self(1 << 2);
    /// A cookie.
    pub const COOKIE: Self = Self(1 << 3);
    /// The method.
    pub const METHOD: Self = Self(1 << 4);
    /// The host the request names.
    pub const DOMAIN: Self = Self(1 << 5);
    /// The client's address or host.
    pub const CLIENT: Self = Self(1 << 6);
    /// A context field other than the method.
    pub const CONTEXT: Self = Self(1 << 7);
    /// The time.
    pub const CLOCK: Self = Self(1 << 8);

    /// What either of the two reads.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether everything in `other` is in here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing but the path is read.
    #[must_use]
    pub const fn path_only(self) -> bool {
        self.0 & !Self::PATH.0 == 0
    }
}

fn path_test(test: &Test) -> PathTest<'_> {
    match test {
        Test::Ant(patterns) => PathTest::Ant(patterns),
        Test::PathPattern(pattern) => PathTest::Pattern(pattern),
        Test::Equals(text) => PathTest::Equals(text),
        Test::StartsWith(text) => PathTest::StartsWith(text),
        Test::Regex(regex) => PathTest::Regex(regex),
        Test::Contains(text) => PathTest::Contains(text),
        Test::EndsWith(text) => PathTest::EndsWith(text),
        _ => PathTest::Other,
    }
}

fn inputs_of(predicate: &Predicate) -> Inputs {
    match (&predicate.test, &predicate.source) {
        (Test::NowBefore(_) | Test::NowAfter(_), _) => Inputs::CLOCK,
        (Test::Never(_), _) | (_, Source::Nothing) => Inputs::default(),
        (_, Source::Path) => Inputs::PATH,
        (_, Source::Header(_)) => Inputs::HEADER,
        (_, Source::Query(_)) => Inputs::QUERY,
        (_, Source::Cookie(_)) => Inputs::COOKIE,
        (_, Source::Method | Source::Context(ContextField::HttpMethod)) => Inputs::METHOD,
        (_, Source::Domain) => Inputs::DOMAIN,
        (_, Source::Host | Source::Ip) => Inputs::CLIENT,
        (_, Source::Context(_)) => Inputs::CONTEXT,
    }
}
