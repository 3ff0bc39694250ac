//! The declared table of known keys: one line per key, from which come reading, warnings and docs.

use super::key::{KeyPath, Part, squash, uniform};
use super::source::{Naming, Property};
use super::value::Kind;

/// What becomes of a known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Read, checked and in force.
    Used,
    /// Accepted and without meaning here; the text says why.
    Inert(&'static str),
    /// Known, but this version does not act on it; a warning says so where it is set.
    Pending(&'static str),
    /// Setting it stops the start, because ignoring it would do harm; the text says what to do.
    Refused(&'static str),
}

/// One known key.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// The path; `*` stands for one or more names, `[]` for any index.
    pub path: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What counts where nothing is set, in the key's own syntax; empty for nothing.
    pub default: &'static str,
    /// What the docs say of the default where `default` cannot (computed ones).
    pub default_note: &'static str,
    /// What it does, for the docs.
    pub meaning: &'static str,
    /// What becomes of it.
    pub status: Status,
    /// Older or foreign paths that mean the same.
    pub aliases: &'static [&'static str],
}

impl KeySpec {
    /// Declares a key that is read.
    pub const fn new(
        path: &'static str,
        kind: Kind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        let (status, aliases) = (Status::Used, &[] as &'static [&'static str]);
        Self { path, kind, default, default_note: "", meaning, status, aliases }
    }

    /// Declares a key that is accepted and means nothing here.
    pub const fn inert(path: &'static str, why: &'static str) -> Self {
        let mut spec = Self::new(path, Kind::Any, "", "");
        spec.status = Status::Inert(why);
        spec
    }

    /// Declares a key that this version does not act on yet.
    pub const fn pending(path: &'static str, kind: Kind, meaning: &'static str) -> Self {
        let mut spec = Self::new(path, kind, "", meaning);
        spec.status = Status::Pending(meaning);
        spec
    }

    /// Declares a key that must not be set.
    pub const fn refused(path: &'static str, what_to_do: &'static str) -> Self {
        let mut spec = Self::new(path, Kind::Any, "", "");
        spec.status = Status::Refused(what_to_do);
        spec
    }

    /// Adds other spellings.
    pub const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Says in the docs what the default is where it is computed.
    pub const fn computed(mut self, note: &'static str) -> Self {
        self.default_note = note;
        self
    }

    /// Whether values of this key are kept out of every text.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::SecretUrl)
    }

    /// The path and its other spellings.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.path).chain(self.aliases.iter().copied())
    }
}

/// A group of keys with a heading.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// The heading in the docs.
    pub title: &'static str,
    /// A paragraph for the docs; may be empty.
    pub about: &'static str,
    /// The keys.
    pub keys: &'static [KeySpec],
}

/// All keys that one binary knows.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// What the binary is called in the docs.
    pub name: &'static str,
    /// The groups, in the order of the docs.
    pub sections: &'static [Section],
}

/// A known key that a property belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) spec: &'static KeySpec,
    /// Written by one of its other spellings.
    pub(super) by_alias: bool,
}

impl Schema {
    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static KeySpec> {
        self.sections.iter().flat_map(|section| section.keys)
    }

    /// The key declared with exactly this path.
    pub fn key(&self, path: &str) -> Option<&'static KeySpec> {
        self.keys().find(|spec| spec.path == path)
    }

    /// The first parts of all known paths, without repetition: what variables begin with.
    pub fn roots(&self) -> Vec<&'static str> {
        let mut roots: Vec<_> = self
            .keys()
            .flat_map(KeySpec::spellings)
            .map(|path| path.split(['.', '[']).next().unwrap_or(path))
            // An argument alone.
            .filter(|root| *root != "config")
            .collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The key that `property` sets: an exact one before one with `*`, and of those the longest.
    pub(super) fn owner(&self, property: &Property, naming: Naming) -> Option<Known> {
        self.keys()
            .flat_map(|spec| {
                spec.spellings().map(move |spelling| (spec, spelling, spelling != spec.path))
            })
            .filter(|(spec, spelling, _)| Pattern::new(spelling).takes(spec, property, naming))
            .max_by_key(|(_, spelling, _)| (!spelling.contains('*'), spelling.len()))
            .map(|(spec, _, by_alias)| Known { spec, by_alias })
    }

    /// Whether some known path goes on below `path`.
    pub(super) fn is_section(&self, path: &KeyPath) -> bool {
        let prefix = path.uniform();
        self.keys().flat_map(KeySpec::spellings).any(|spelling| {
            let known = KeyPath::parse(spelling).uniform();
            known.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(['.', '[']))
                || spelling.contains(".*") && Pattern::new(spelling).goes_through(path)
        })
    }

    /// The known path under the same root that is spelled most like `path`.
    pub(super) fn nearest(&self, path: &KeyPath) -> Option<&'static str> {
        let wanted = path.uniform();
        self.keys()
            .flat_map(KeySpec::spellings)
            .filter(|spelling| spelling.starts_with("shenyu."))
            .min_by_key(|spelling| distance(&wanted, &KeyPath::parse(spelling).uniform()))
    }
}

/// A declared path, split.
#[derive(Debug)]
pub(super) struct Pattern {
    parts: Vec<PatternPart>,
}

#[derive(Debug, PartialEq, Eq)]
enum PatternPart {
    /// Exactly this name, in uniform spelling.
    Name(String),
    /// One or more names.
    Star,
    /// Any index.
    Index,
}

impl Pattern {
    pub(super) fn new(path: &str) -> Self {
        let mut parts = Vec::new();
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            parts.push(match name {
                "*" => PatternPart::Star,
                _ => PatternPart::Name(uniform(name)),
            });
            if name.len() < part.len() {
                parts.push(PatternPart::Index);
            }
        }
        Self { parts }
    }

    /// Whether `property` sets a key of this pattern or, for lists, one of its elements.
    fn takes(&self, spec: &KeySpec, property: &Property, naming: Naming) -> bool {
        let parts = property.path.parts();
        let holds_more = matches!(spec.kind, Kind::List(_) | Kind::Any);
        let ends = |rest: &[Part]| match rest {
            [] => true,
            [Part::Index(_)] => holds_more,
            _ => matches!(spec.kind, Kind::Any),
        };
        match naming {
            Naming::Dotted => strict(&self.parts, parts, &ends),
            Naming::Squashed => {
                !self.captures(&property.path, naming).is_empty() || self.loose(parts, &ends)
            }
        }
    }

    /// Whether a path of this pattern goes through `path`, by names before its first `*` alone.
    fn goes_through(&self, path: &KeyPath) -> bool {
        let names = path.parts().iter().map(|part| match part {
            Part::Name(name) => uniform(name),
            Part::Index(index) => index.to_string(),
        });
        self.parts
            .iter()
            .zip(names)
            .all(|(want, have)| matches!(want, PatternPart::Name(name) if *name == have))
            && path.parts().len() < self.parts.len()
    }

    fn loose(&self, parts: &[Part], ends: &dyn Fn(&[Part]) -> bool) -> bool {
        if self.parts.contains(&PatternPart::Star) {
            return false;
        }
        let wanted: Vec<_> = self.parts.iter().collect();
        (0..=parts.len()).any(|taken| ends(&parts[taken..]) && loose_run(&wanted, &parts[..taken]))
    }

    /// What `*` stands for in `path`: the names joined by dots; empty when the path does not fit.
    /// A pattern without `*` captures nothing.
    pub(super) fn captures(&self, path: &KeyPath, naming: Naming) -> String {
        let Some(at) = self.parts.iter().position(|part| *part == PatternPart::Star) else {
            return String::new();
        };
        let (before, after) = (&self.parts[..at], &self.parts[at + 1..]);
        let parts = path.parts();
        for start in 0..parts.len() {
            if !fits(before, &parts[..start], naming) {
                continue;
            }
            for end in start + 1..=parts.len() {
                let names: Option<Vec<&str>> = parts[start..end]
                    .iter()
                    .map(|part| match part {
                        Part::Name(name) => Some(name.as_str()),
                        Part::Index(_) => None,
                    })
                    .collect();
                if let (Some(names), true) = (names, fits(after, &parts[end..], naming)) {
                    return names.join(".");
                }
            }
        }
        String::new()
    }
}

fn fits(wanted: &[PatternPart], parts: &[Part], naming: Naming) -> bool {
    match naming {
        Naming::Dotted => strict(wanted, parts, &|rest| rest.is_empty()),
        Naming::Squashed => loose_run(&wanted.iter().collect::<Vec<_>>(), parts),
    }
}

/// Part by part; a `*` takes as few names as it can.
fn strict(wanted: &[PatternPart], parts: &[Part], ends: &dyn Fn(&[Part]) -> bool) -> bool {
    match (wanted.first(), parts.first()) {
        (None, _) => ends(parts),
        (Some(PatternPart::Name(want)), Some(Part::Name(name))) => {
            *want == uniform(name) && strict(&wanted[1..], &parts[1..], ends)
        }
        (Some(PatternPart::Index), Some(Part::Index(_))) => strict(&wanted[1..], &parts[1..], ends),
        (Some(PatternPart::Star), Some(Part::Name(_))) => (1..=parts.len())
            .take_while(|taken| matches!(parts[taken - 1], Part::Name(_)))
            .any(|taken| strict(&wanted[1..], &parts[taken..], ends)),
        _ => false,
    }
}

/// By letters and digits alone, as variables are compared; an index counts as its digits.
fn loose_run(wanted: &[&PatternPart], parts: &[Part]) -> bool {
    let mut rest: String = parts
        .iter()
        .map(|part| match part {
            Part::Name(name) => squash(name),
            Part::Index(index) => index.to_string(),
        })
        .collect();
    for want in wanted {
        match want {
            PatternPart::Name(name) => match rest.strip_prefix(name.as_str()) {
                Some(after) => rest = after.to_owned(),
                None => return false,
            },
            PatternPart::Index => {
                let digits = rest.chars().take_while(char::is_ascii_digit).count();
                if digits == 0 {
                    return false;
                }
                rest.drain(..digits);
            }
            PatternPart::Star => return false,
        }
    }
    rest.is_empty()
}

/// Edits between two texts: insert, delete, replace, swap of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}
