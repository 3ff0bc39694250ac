//! Ant path patterns: the operator `match` on paths.

use super::glob::{Glob, Part, parts};
use super::regexes::{RegexFault, Regexes};
use super::step::{Step, literal_head};

/// A compiled Ant pattern.
///
/// Empty segments do not count, nothing is decoded, case matters. Matching does not allocate.
///
/// Source: the vectors executed on ShenYu 2.7.1.
#[derive(Debug, Clone)]
pub struct AntPattern {
    text: Box<str>,
    segments: Box<[Segment]>,
    /// The length of the leading text that a path without empty segments must begin with.
    prefix: u32,
    /// How many segments that text holds.
    prefix_segments: u32,
    /// How many segments stand before the first `**`; all of them without one.
    head: u32,
    /// The segment after the last `**`; 0 without one.
    tail: u32,
}

/// One segment of a pattern.
#[derive(Debug, Clone)]
enum Segment {
    /// This text, as a range of the pattern.
    Literal(u32, u32),
    /// `*`: any text, at the end also none.
    Star,
    /// `{name}`: any text.
    Variable,
    /// Wildcards among other text.
    Glob(Box<Glob>),
    /// `**`: any number of segments.
    Rest,
}

impl AntPattern {
    /// Compiles one pattern.
    ///
    /// # Errors
    /// The constraint of a variable is no regular expression.
    pub(super) fn compile(pattern: &str, regexes: &mut Regexes) -> Result<Self, RegexFault> {
        let mut segments = Vec::new();
        let mut walk = Segments::new(pattern);
        while let Some(text) = walk.next() {
            let end = walk.front;
            segments.push(segment(text, end - text.len(), regexes)?);
        }
        let is_rest = |segment: &Segment| matches!(segment, Segment::Rest);
        let head = segments.iter().position(is_rest).unwrap_or(segments.len());
        let tail = segments.iter().rposition(is_rest).map_or(0, |at| at + 1);
        let (prefix, prefix_segments) = literal_prefix(pattern, &segments);
        Ok(Self {
            text: pattern.into(),
            segments: segments.into_boxed_slice(),
            prefix,
            prefix_segments,
            head: narrow(head),
            tail: narrow(tail),
        })
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern takes `path`.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        if path.starts_with('/') != self.text.starts_with('/') {
            return false;
        }
        let mut walk = Segments::new(path);
        let head = self.head as usize;
        let prefix = &self.text.as_bytes()[..self.prefix as usize];
        if let (&[b'/', wanted, ..], &[_, given, ..]) = (prefix, path.as_bytes())
            && given != wanted
            && given != b'/'
        {
            // Most patterns of a list fail here, at the first letter.
            return false;
        }
        // In one step over the literal beginning; where that fails, empty segments may be why.
        let rest = path.as_bytes().strip_prefix(prefix);
        let mut done = 0;
        if rest.is_some_and(|rest| rest.first().is_none_or(|&byte| byte == b'/')) {
            walk.front = prefix.len();
            done = self.prefix_segments as usize;
        }
        for (at, segment) in self.segments[..head].iter().enumerate().skip(done) {
            match walk.next() {
                Some(text) if self.fits(segment, text) => {}
                Some(_) => return false,
                // Only a star in the last place is content with nothing, after a slash.
                None => {
                    return at + 1 == self.segments.len()
                        && matches!(segment, Segment::Star)
                        && path.ends_with('/');
                }
            }
        }
        if head == self.segments.len() {
            return walk.is_empty() && self.text.ends_with('/') == path.ends_with('/');
        }
        if self.tail as usize == head + 1 && self.tail as usize == self.segments.len() {
            return true;
        }
        self.matches_after_head(path, walk)
    }

    /// What the pattern asks of the segments of a path, up to its first `**`.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        let mut walk = Segments::new(&self.text);
        self.segments.iter().enumerate().map(move |(at, segment)| {
            let text = walk.next().unwrap_or_default();
            match segment {
                Segment::Literal(..) => Step::Literal(text),
                Segment::Star if at + 1 == self.segments.len() => Step::Optional,
                Segment::Star | Segment::Variable => Step::One(""),
                Segment::Glob(glob) => Step::One(literal_head(glob, text)),
                Segment::Rest => Step::Rest,
            }
        })
    }

    /// The text that the last segment of every path it takes must be, where the pattern ends with
    /// a text after a `**`.
    pub(crate) fn last_after_rest(&self) -> Option<&str> {
        let text = match self.segments.last() {
            Some(Segment::Literal(from, to)) => &self.text[*from as usize..*to as usize],
            _ => return None,
        };
        (self.tail > 0).then_some(text)
    }

    /// The longest text that stands in every path the pattern takes.
    pub(crate) fn core(&self) -> &str {
        let mut walk = Segments::new(&self.text);
        let texts = self.segments.iter().map(|segment| {
            let text = walk.next().unwrap_or_default();
            match segment {
                Segment::Literal(..) => text,
                Segment::Glob(glob) => glob.core(text),
                Segment::Star | Segment::Variable | Segment::Rest => "",
            }
        });
        texts.max_by_key(|text| text.len()).unwrap_or_default()
    }

    /// A regular expression that matches every path the pattern takes, and perhaps others.
    pub(crate) fn wider_regex(&self) -> String {
        let mut out = String::from(r"\A");
        for segment in &self.segments {
            match segment {
                Segment::Literal(from, to) => {
                    let text = &self.text[*from as usize..*to as usize];
                    out.push_str("/*");
                    out.push_str(&regex::escape(text));
                }
                Segment::Star | Segment::Variable => out.push_str("/*[^/]*"),
                Segment::Glob(glob) => {
                    out.push_str("/*");
                    glob.write_wider(&mut out);
                }
                Segment::Rest => out.push_str("(?s:.*)"),
            }
        }
        out.push_str(r"/*\z");
        out
    }

    /// The part of the pattern from its first `**` on.
    fn matches_after_head(&self, path: &str, mut walk: Segments<'_>) -> bool {
        let (head, tail) = (self.head as usize, self.tail as usize);
        let last = self.segments.len() - 1;
        for (at, segment) in self.segments.iter().enumerate().skip(tail).rev() {
            match walk.next_back() {
                Some(text) if self.fits(segment, text) => {}
                _ => return false,
            }
            if at == last && self.text.ends_with('/') != path.ends_with('/') {
                return false;
            }
        }
        // Between two `**` the first place where a group fits is as good as any other.
        self.segments[head..tail]
            .split(|segment| matches!(segment, Segment::Rest))
            .filter(|group| !group.is_empty())
            .all(|group| self.find_group(group, &mut walk))
    }

    fn find_group(&self, group: &[Segment], walk: &mut Segments<'_>) -> bool {
        loop {
            let mut attempt = walk.clone();
            let fits = group
                .iter()
                .all(|segment| attempt.next().is_some_and(|text| self.fits(segment, text)));
            if fits {
                *walk = attempt;
                return true;
            }
            if walk.next().is_none() {
                return false;
            }
        }
    }

    fn fits(&self, segment: &Segment, text: &str) -> bool {
        match segment {
            Segment::Literal(from, to) => &self.text[*from as usize..*to as usize] == text,
            Segment::Star | Segment::Variable | Segment::Rest => true,
            Segment::Glob(glob) => glob.matches(text),
        }
    }
}

fn segment(text: &str, from: usize, regexes: &mut Regexes) -> Result<Segment, RegexFault> {
    if text == "**" {
        return Ok(Segment::Rest);
    }
    let parts = parts(text);
    Ok(match parts.as_slice() {
        [Part::Run] => Segment::Star,
        [Part::Variable { constraint: None, .. }] => Segment::Variable,
        [Part::Literal(_)] => Segment::Literal(narrow(from), narrow(from + text.len())),
        parts => Segment::Glob(Box::new(Glob::compile(parts, regexes)?)),
    })
}

/// The leading literal segments as one text, where single slashes divide them: its length in bytes
/// and in segments.
fn literal_prefix(pattern: &str, segments: &[Segment]) -> (u32, u32) {
    let mut end = 0;
    let mut count = 0;
    let first = u32::from(pattern.starts_with('/'));
    for segment in segments {
        match segment {
            Segment::Literal(from, to) if *from == if count == 0 { first } else { end + 1 } => {
                end = *to;
                count += 1;
            }
            _ => break,
        }
    }
    (end, count)
}

/// Patterns come in messages of bounded size, so their offsets always fit.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// The non-empty segments of a path, from both ends.
#[derive(Debug, Clone)]
struct Segments<'p> {
    path: &'p str,
    front: usize,
    back: usize,
}

impl<'p> Segments<'p> {
    const fn new(path: &'p str) -> Self {
        Self { path, front: 0, back: path.len() }
    }

    fn left(&self) -> &'p [u8] {
        &self.path.as_bytes()[self.front..self.back]
    }

    fn is_empty(&mut self) -> bool {
        let left = self.left();
        self.front += left.iter().position(|&byte| byte != b'/').unwrap_or(left.len());
        self.front == self.back
    }

    fn next(&mut self) -> Option<&'p str> {
        if self.is_empty() {
            return None;
        }
        let left = self.left();
        let from = self.front;
        self.front += left.iter().position(|&byte| byte == b'/').unwrap_or(left.len());
        Some(&self.path[from..self.front])
    }

    fn next_back(&mut self) -> Option<&'p str> {
        let left = self.left();
        let to = self.front + left.iter().rposition(|&byte| byte != b'/')? + 1;
        let before = &self.path.as_bytes()[self.front..to];
        self.back =
            self.front + before.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        Some(&self.path[self.back..to])
    }
}
