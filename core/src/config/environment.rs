//! What configuration is read from, behind a trait, so that tests never touch the real machine.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The most bytes one configuration file may have.
pub const FILE_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// Environment variables and files, as configuration sees them.
pub trait Environment {
    /// All variables as (name, value); names and values that are not UTF-8 are left out.
    fn variables(&self) -> Vec<(String, String)>;

    /// The text of a file, or `None` where there is no such file.
    ///
    /// # Errors
    /// Whatever keeps an existing file from being read, a file over [`FILE_LIMIT_BYTES`] or one
    /// that is not UTF-8 included.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;

    /// One variable by its exact name.
    fn variable(&self, name: &str) -> Option<String> {
        self.variables().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The process's own environment and file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variables(&self) -> Vec<(String, String)> {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut text = String::new();
        file.take(FILE_LIMIT_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_LIMIT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the file has more than {FILE_LIMIT_BYTES} bytes"),
            ));
        }
        Ok(Some(text))
    }
}

/// Variables and files held in memory: for tests, and for programs that build their own.
#[derive(Debug, Clone, Default)]
pub struct MemoryEnvironment {
    variables: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, String>,
}

impl MemoryEnvironment {
    /// Creates one without variables and files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>, text: &str) -> Self {
        self.files.insert(path.into(), text.to_owned());
        self
    }
}

impl Environment for MemoryEnvironment {
    fn variables(&self) -> Vec<(String, String)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        // `./a.yml` and `a.yml` are one file.
        let plain = |p: &Path| p.components().collect::<PathBuf>();
        let wanted = plain(path.strip_prefix(".").unwrap_or(path));
        Ok(self
            .files
            .iter()
            .find(|(known, _)| plain(known.strip_prefix(".").unwrap_or(known)) == wanted)
            .map(|(_, text)| text.clone()))
    }
}
