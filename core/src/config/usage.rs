//! What `--help` and `--version` say.

use std::fmt::Write as _;

/// A binary that is configured by this module.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The settings that are needed first: key, and what it is.
    pub first: &'static [(&'static str, &'static str)],
}

impl Program {
    /// The text to print instead of starting, where the arguments ask for one.
    #[must_use]
    pub fn answer(&self, arguments: &[String]) -> Option<String> {
        let asks = |words: [&str; 2]| arguments.iter().any(|given| words.contains(&given.as_str()));
        if asks(["--help", "-h"]) {
            return Some(self.usage());
        }
        asks(["--version", "-V"]).then(|| format!("{} {}", self.name, self.version))
    }

    fn usage(&self) -> String {
        let Self { name, about, .. } = self;
        let mut text = format!(
            "{name}: {about}\n\nusage: {name} [--config=PATH] [--key=value]...\n\n\
             Settings come from application.yml in the current folder, from environment variables\n\
             (SHENYU_TIME_ZONE for shenyu.timeZone) and from arguments, which win. The first ones:\n\n"
        );
        let width = self.first.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
        for (key, meaning) in self.first {
            let _ = writeln!(text, "  --{key:width$}  {meaning}");
        }
        text.push_str("\nAll of them: docs/configuration.md");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    const PROGRAM: Program = Program {
        name: "longmen-x",
        about: "an example",
        version: "1.2.3",
        first: &[("server.port", "the port"), ("a", "another")],
    };

    #[test]
    fn who_asks_is_told_and_who_does_not_is_not() {
        let asked = |words: &[&str]| {
            PROGRAM.answer(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(asked(&["-V"]).as_deref(), Some("longmen-x 1.2.3"));
        let usage = asked(&["--server.port=1", "--help"]).unwrap();
        assert!(usage.starts_with("longmen-x: an example\n\nusage: longmen-x "), "{usage}");
        assert!(
            usage.contains("\n  --server.port  the port\n  --a            another\n"),
            "{usage}"
        );
        assert_eq!(asked(&["--server.port=1"]), None);
    }
}
