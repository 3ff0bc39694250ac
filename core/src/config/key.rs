//! Key paths and the relaxed comparison of their names.

use std::fmt;

/// One part of a key path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// A name, as written.
    Name(String),
    /// An index into a list, counted from 0.
    Index(usize),
}

/// A key path such as `shenyu.netty.http.workerCount` or `a[0].b`, as somebody wrote it.
///
/// Two paths mean the same key when their [`KeyPath::uniform`] texts are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KeyPath(Vec<Part>);

impl KeyPath {
    /// Reads a dotted path; `[n]` is an index, any other text in brackets is one name whatever
    /// it holds. Empty parts are dropped.
    pub fn parse(text: &str) -> Self {
        let mut path = Self::default();
        path.push_text(text);
        path
    }

    /// Reads the name of an environment variable: `_`, `.` and `-` separate, numbers are indexes.
    pub(super) fn parse_variable(name: &str) -> Self {
        let parts = name.split(['_', '.', '-']).filter(|part| !part.is_empty());
        Self(
            parts
                .map(|part| {
                    part.parse().map_or_else(|_| Part::Name(part.to_ascii_lowercase()), Part::Index)
                })
                .collect(),
        )
    }

    /// The parts, outermost first.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Appends what `text` says, read as by [`KeyPath::parse`].
    pub(super) fn push_text(&mut self, text: &str) {
        let mut name = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '.' => self.push_name(&mut name),
                '[' => match rest.split_once(']') {
                    Some((inside, after)) => {
                        self.push_name(&mut name);
                        self.0.push(
                            inside
                                .parse()
                                .map_or_else(|_| Part::Name(inside.to_owned()), Part::Index),
                        );
                        rest = after;
                    }
                    None => name.push(c),
                },
                _ => name.push(c),
            }
        }
        self.push_name(&mut name);
    }

    fn push_name(&mut self, name: &mut String) {
        if !name.is_empty() {
            self.0.push(Part::Name(std::mem::take(name)));
        }
    }

    /// Appends an index.
    pub(super) fn push_index(&mut self, index: usize) {
        self.0.push(Part::Index(index));
    }

    /// Shortens the path to `len` parts.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// The form in which `workerCount`, `worker-count` and `WORKERCOUNT` are equal.
    pub fn uniform(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Name(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&uniform(name));
                }
                Part::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    /// The form that environment variables are compared in: letters and digits alone.
    pub(super) fn squashed(&self) -> String {
        squash(&self.to_string())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            match part {
                Part::Name(name) if name.contains(['.', '[', ']']) => write!(f, "[{name}]")?,
                Part::Name(name) if at == 0 => f.write_str(name)?,
                Part::Name(name) => write!(f, ".{name}")?,
                Part::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns `name` in lower case without dashes, underscores and other marks.
pub fn uniform(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns `text` in lower case, letters and digits alone.
pub(super) fn squash(text: &str) -> String {
    uniform(text)
}

#[cfg(test)]
mod tests {
    use super::{KeyPath, uniform};

    #[test]
    fn relaxed_spellings_are_one_key() {
        let want = "shenyu.netty.http.workercount";
        for text in [
            "shenyu.netty.http.workerCount",
            "shenyu.netty.http.worker-count",
            "shenyu.netty.http.WORKERCOUNT",
            "SHENYU.netty.http.worker_count",
        ] {
            assert_eq!(KeyPath::parse(text).uniform(), want, "{text}");
        }
        assert_eq!(uniform("rate-limiter"), uniform("rateLimiter"));
    }

    #[test]
    fn brackets_index_or_quote() {
        assert_eq!(KeyPath::parse("a[0].b[12]").uniform(), "a[0].b[12]");
        let quoted = KeyPath::parse("logging.level.[org.apache.shenyu]");
        assert_eq!(quoted.parts().len(), 3);
        assert_eq!(quoted.to_string(), "logging.level[org.apache.shenyu]");
        assert_eq!(KeyPath::parse("a.[b").uniform(), "a.b");
    }

    #[test]
    fn variables_split_at_underscores() {
        assert_eq!(
            KeyPath::parse_variable("SHENYU_HEALTH_PATHS_0_").uniform(),
            "shenyu.health.paths[0]"
        );
        assert_eq!(
            KeyPath::parse_variable("spring.datasource.url").uniform(),
            "spring.datasource.url"
        );
        assert_eq!(
            KeyPath::parse("shenyu.jwt.expired-seconds").squashed(),
            KeyPath::parse_variable("SHENYU_JWT_EXPIRED_SECONDS").squashed()
        );
    }
}
