//! What loading a configuration may have to say: problems that stop the start, and notices.

use std::fmt;

/// The exit code of a process whose configuration cannot be used (`EX_USAGE` of sysexits).
pub const EXIT_CONFIG: u8 = 64;

/// One thing that is wrong, with the place where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// File and line, variable or argument; `default` for what the program brings along.
    pub place: String,
    /// The key, as its owner spells it; absent where no key is at fault.
    pub key: Option<String>,
    /// What was expected and what was found instead; never a secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a configuration, at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one problem, in the order of the key tables.
    pub problems: Vec<Problem>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "the configuration has {count} problem{}", if count == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

/// Something to log once the log is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: NoticeLevel,
    /// The whole text.
    pub text: String,
}

/// How much a [`Notice`] matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Somebody should look at it.
    Warn,
}

impl Notice {
    /// Makes a notice of level `info`.
    pub fn info(text: impl Into<String>) -> Self {
        Self { level: NoticeLevel::Info, text: text.into() }
    }

    /// Makes a notice of level `warn`.
    pub fn warn(text: impl Into<String>) -> Self {
        Self { level: NoticeLevel::Warn, text: text.into() }
    }
}

/// A configuration that can be used, and what is to be said about it.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The configuration.
    pub config: T,
    /// What to log, in order.
    pub notices: Vec<Notice>,
}

impl<T> Loaded<T> {
    /// Writes the notices to the log.
    pub fn log_notices(&self) {
        for notice in &self.notices {
            match notice.level {
                NoticeLevel::Info => tracing::info!("{}", notice.text),
                NoticeLevel::Warn => tracing::warn!("{}", notice.text),
            }
        }
    }
}
