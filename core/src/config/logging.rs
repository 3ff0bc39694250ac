//! Log settings, the same for both binaries.

use super::{KeySpec, Kind, Reader, Section};
use crate::setting_words;

/// A log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Every step.
    Trace,
    /// What helps to find a fault.
    Debug,
    /// What an operator wants to know.
    Info,
    /// What somebody should look at.
    Warn,
    /// What went wrong.
    Error,
    /// Nothing.
    Off,
}

setting_words!(Level {
    "trace" => Self::Trace,
    "debug" => Self::Debug,
    "info" => Self::Info,
    "warn" => Self::Warn,
    "error" => Self::Error,
    "off" => Self::Off,
    "all" => Self::Trace,
    "true" => Self::Debug,
    "false" => Self::Off,
    "fatal" => Self::Error,
});

impl Level {
    /// The word of a filter directive.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Off => "off",
        }
    }
}

/// How a log line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

setting_words!(Format { "text" => Self::Text, "json" => Self::Json });

/// The keys of this section.
pub const SECTION: Section = Section {
    title: "Log",
    about: "`org.apache.shenyu` is taken for all of Longmen; other Java packages are accepted and \
            have no meaning here. Names such as `longmen_core::sync` or `hyper` select our modules.",
    keys: &[
        KeySpec::new(
            "logging.level.*",
            Kind::Level,
            "",
            "The level of one logger; `root` for all.",
        ),
        KeySpec::new(
            "shenyu.logging.format",
            Kind::Choice(Format::WORDS),
            "text",
            "Lines for people, or one JSON object a line.",
        ),
        KeySpec::inert("logging.file.*", "the log goes to standard output"),
        KeySpec::inert("logging.pattern.*", "the form of a line is fixed"),
        KeySpec::inert("logging.config", "Java's log library"),
        KeySpec::inert("logging.logback.*", "Java's log library"),
        KeySpec::inert("logging.group.*", "Java's log library"),
        KeySpec::inert("logging.charset.*", "the log is UTF-8"),
        KeySpec::inert("logging.register-shutdown-hook", "Java's log library"),
    ],
};

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingConfig {
    /// The level of everything without a level of its own; `info` unless set.
    pub root: Level,
    /// Levels of single loggers, in no order; names as written.
    pub levels: Vec<(String, Level)>,
    /// How a line is written.
    pub format: Format,
}

impl LoggingConfig {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let mut levels: Vec<(String, Level)> = reader.entries("logging.level.*");
        let root = levels
            .iter()
            .position(|(name, _)| name.eq_ignore_ascii_case("root"))
            .map_or(Level::Info, |at| levels.swap_remove(at).1);
        Self { root, levels, format: reader.get("shenyu.logging.format") }
    }

    /// The filter in the syntax of `tracing_subscriber::EnvFilter`: the root level, then one
    /// directive a logger; Java packages but `org.apache.shenyu` itself are left out.
    pub fn filter(&self) -> String {
        let mut directives = vec![self.root.as_str().to_owned()];
        let mut levels: Vec<_> = self.levels.iter().collect();
        levels.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, level) in levels {
            if name == "org.apache.shenyu" {
                let crates = ["admin", "bootstrap", "core", "db", "plugins"];
                directives.extend(crates.map(|c| format!("longmen_{c}={}", level.as_str())));
            } else if name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                directives.push(format!("{name}={}", level.as_str()));
            }
        }
        directives.join(",")
    }
}
