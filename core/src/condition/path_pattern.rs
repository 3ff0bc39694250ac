//! Path patterns of the operator `pathPattern`.
//!
//! Other than Ant patterns they count empty segments, compare decoded segments without their
//! `;parameters`, and allow "the rest" at the end only.
//!
//! Source: the vectors executed on ShenYu 2.7.1 (Spring 6.1); error texts are its.

mod parse;
mod segment;

use std::sync::Arc;

use regex::Regex;

use self::segment::RawSegment;
use super::glob::Glob;
use super::regexes::Regexes;
use super::step::{Step, literal_head};

/// A compiled path pattern.
///
/// Matching allocates only where a wildcard meets a segment with escapes.
#[derive(Debug, Clone)]
pub struct PathPattern {
    text: Box<str>,
    elements: Box<[Element]>,
}

/// Why a path pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatternFault {
    /// The reason in one line.
    pub(super) text: String,
    /// Whether the reference's parser refuses it too, with this very text.
    pub(super) stock: bool,
}

/// One element: a slash, or what stands between two.
#[derive(Debug, Clone)]
enum Element {
    Separator,
    /// This text, as a range of the pattern.
    Literal(u32, u32),
    /// `*`: one segment, at the end also none.
    Star,
    /// `{name}`, `{name:regex}`: one segment that is not empty.
    Variable(Option<Arc<Regex>>),
    /// Wildcards among other text; the flag says whether variables are among them.
    Glob(Box<Glob>, bool),
    /// Only `?` as wildcards: the segment must be there.
    Single(Box<Glob>),
    /// `/**` or `/{*name}`: whatever follows.
    Rest,
}

impl PathPattern {
    /// Compiles one pattern.
    ///
    /// # Errors
    /// The pattern breaks the rules of the syntax, or a constraint is no regular expression.
    pub(super) fn compile(pattern: &str, regexes: &mut Regexes) -> Result<Self, PatternFault> {
        let elements = parse::parse(pattern, regexes)?.into_boxed_slice();
        Ok(Self { text: pattern.into(), elements })
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the pattern asks of the decoded segments of a path, up to the first element that is
    /// content with nothing.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let mut texts = self.text.split('/').filter(|text| !text.is_empty());
        let count = self.elements.len();
        let between = self.elements.iter().enumerate();
        between.filter(|(_, element)| !matches!(element, Element::Separator)).map(
            move |(at, element)| {
                let text = texts.next().unwrap_or_default();
                match element {
                    Element::Literal(..) => Step::Literal(text),
                    Element::Star if at + 1 == count => Step::Optional,
                    Element::Star | Element::Variable(_) => Step::One(""),
                    Element::Glob(glob, _) if glob.matches("") => Step::Rest,
                    Element::Glob(glob, _) | Element::Single(glob) => {
                        Step::One(literal_head(glob, text))
                    }
                    Element::Rest | Element::Separator => Step::Rest,
                }
            },
        )
    }

    /// Whether the pattern takes `path`. A path with a broken escape is taken by none.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let Some((last, before)) = self.elements.split_last() else {
            return path.is_empty();
        };
        if path.is_empty() && !matches!(self.elements.first(), Some(Element::Rest)) {
            return false;
        }
        let mut at = 0;
        for element in before {
            match self.step(element, path, at, false) {
                Some(next) => at = next,
                None => return false,
            }
        }
        match self.step(last, path, at, true) {
            Some(next) => matches!(last, Element::Rest) || next >= path.len(),
            None => false,
        }
    }

    /// Matches one element at `at` and returns where the next one starts.
    fn step(&self, element: &Element, path: &str, at: usize, last: bool) -> Option<usize> {
        let here = path.as_bytes().get(at).copied();
        match element {
            Element::Separator => return (here == Some(b'/')).then_some(at + 1),
            Element::Rest => return (here.is_none() || here == Some(b'/')).then_some(at),
            Element::Star if here.is_none() => return last.then_some(at),
            // Where no segment stands such an element sees an empty one in place of the slash.
            Element::Glob(glob, variables) if here.is_none() || here == Some(b'/') => {
                let next = at + usize::from(here.is_some());
                return (!(last && *variables) && glob.matches("")).then_some(next);
            }
            _ if here.is_none() || here == Some(b'/') => return None,
            _ => {}
        }
        let segment = RawSegment::at(path, at);
        let fits = match element {
            Element::Literal(from, to) => segment.equals(&self.text[*from as usize..*to as usize]),
            Element::Star => last || !segment.value()?.is_empty(),
            Element::Variable(constraint) => {
                let text = segment.value()?;
                !text.is_empty() && constraint.as_ref().is_none_or(|regex| regex.is_match(&text))
            }
            Element::Glob(glob, variables) => {
                let text = segment.value()?;
                !(last && *variables && text.is_empty()) && glob.matches(&text)
            }
            Element::Single(glob) => glob.matches(&segment.value()?),
            Element::Separator | Element::Rest => false,
        };
        fits.then_some(at + segment.len())
    }
}
