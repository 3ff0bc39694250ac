//! Finding the declared key of a property.

use std::collections::HashMap;

use super::key::{KeyPath, Part, squash, uniform};
use super::schema::{KeySpec, Schema};
use super::source::{Naming, Property};
use super::value::Kind;

/// A known key that a property belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) spec: &'static KeySpec,
    /// Written by one of its other spellings.
    pub(super) by_alias: bool,
}

/// A [`Schema`] prepared for finding keys: made once for each loading.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) schema: &'static Schema,
    by_path: HashMap<&'static str, &'static KeySpec>,
    dotted: HashMap<String, Known>,
    squashed: HashMap<String, Known>,
    /// Paths with `*` or `[]`; those without `*` first, and of the others the longest.
    patterns: Vec<(Pattern, Known)>,
}

impl Lookup {
    pub(super) fn new(schema: &'static Schema) -> Self {
        let (mut dotted, mut squashed) = (HashMap::new(), HashMap::new());
        let mut patterns = Vec::new();
        for spec in schema.keys() {
            for spelling in spec.spellings() {
                let known = Known { spec, by_alias: spelling != spec.path };
                if spelling.contains(['*', '[']) {
                    patterns.push((spelling, known));
                } else {
                    let path = KeyPath::parse(spelling);
                    dotted.insert(path.uniform(), known);
                    squashed.insert(path.squashed(), known);
                }
            }
        }
        patterns.sort_by_key(|(spelling, _)| (spelling.contains('*'), usize::MAX - spelling.len()));
        Self {
            schema,
            by_path: schema.keys().map(|spec| (spec.path, spec)).collect(),
            dotted,
            squashed,
            patterns: patterns.into_iter().map(|(s, known)| (Pattern::new(s), known)).collect(),
        }
    }

    /// The key declared with exactly this path.
    pub(super) fn key(&self, path: &str) -> Option<&'static KeySpec> {
        self.by_path.get(path).copied()
    }

    /// The key that `property` sets: an exact one before one with `*`, and of those the longest.
    pub(super) fn owner(&self, property: &Property, naming: Naming) -> Option<Known> {
        let find = |path: &KeyPath| match naming {
            Naming::Dotted => self.dotted.get(&path.uniform()),
            Naming::Squashed => self.squashed.get(&path.squashed()),
        };
        if let Some(known) = find(&property.path) {
            return Some(*known);
        }
        // An element of a list.
        if let Some(Part::Index(_)) = property.path.parts().last() {
            let mut list = property.path.clone();
            list.truncate(list.parts().len() - 1);
            if let Some(known) = find(&list)
                && matches!(known.spec.kind, Kind::List(_) | Kind::Any)
            {
                return Some(*known);
            }
        }
        let takes =
            |(pattern, known): &&(Pattern, Known)| pattern.takes(known.spec, property, naming);
        self.patterns.iter().find(takes).map(|(_, known)| *known)
    }

    /// Whether some known path goes on below `path`.
    pub(super) fn is_section(&self, path: &KeyPath) -> bool {
        let prefix = path.uniform();
        let below = |known: &String| {
            known.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        self.dotted.keys().any(below)
            || self.patterns.iter().any(|(pattern, _)| pattern.goes_through(path))
    }

    /// The known path below `shenyu` that is spelled most like `path`.
    pub(super) fn nearest(&self, path: &KeyPath) -> Option<&'static str> {
        let wanted = path.uniform();
        self.schema
            .keys()
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
        match naming {
            Naming::Dotted => {
                let holds_more = matches!(spec.kind, Kind::List(_) | Kind::Any);
                strict(&self.parts, parts, &|rest| match rest {
                    [] => true,
                    [Part::Index(_)] => holds_more,
                    _ => matches!(spec.kind, Kind::Any),
                })
            }
            Naming::Squashed if self.parts.contains(&PatternPart::Star) => {
                !self.captures(&property.path, naming).is_empty()
            }
            Naming::Squashed => loose_run(&self.parts, parts),
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
        Naming::Squashed => loose_run(wanted, parts),
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
            .take_while(|taken| matches!(parts[*taken - 1], Part::Name(_)))
            .any(|taken| strict(&wanted[1..], &parts[taken..], ends)),
        _ => false,
    }
}

/// By letters and digits alone, as variables are compared; an index counts as its digits.
fn loose_run(wanted: &[PatternPart], parts: &[Part]) -> bool {
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
