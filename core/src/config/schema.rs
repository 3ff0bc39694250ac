//! The declared table of known keys: one line per key, from which come reading, warnings and docs.

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

    /// Says that the key is read and checked, and that this version does not act on it yet: a warning
    /// names it where it is set.
    pub const fn not_yet(mut self, what: &'static str) -> Self {
        self.status = Status::Pending(what);
        self
    }

    /// Says that the key is read and checked, and means nothing here.
    pub const fn without_effect(mut self, why: &'static str) -> Self {
        self.status = Status::Inert(why);
        self
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
}
