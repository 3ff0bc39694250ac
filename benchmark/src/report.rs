//! Results: where they go and what machine they are from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

/// What a measurement was made on and how it was called.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Circumstances {
    /// When it began, in UTC.
    pub started_at: String,
    /// The command line.
    pub command: Vec<String>,
    /// Version of the measuring tool, which is the version of the workspace.
    pub version: &'static str,
    /// The processor's name as the kernel gives it.
    pub cpu: String,
    /// Number of cores this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, T> {
    benchmark: &'a str,
    circumstances: &'a Circumstances,
    #[serde(flatten)]
    result: &'a T,
}

impl Circumstances {
    /// Looks around; what the kernel does not tell is `unknown`.
    #[must_use]
    pub fn now() -> Self {
        let unknown = || "unknown".to_owned();
        let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
        Self {
            started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            command: command_line(),
            version: env!("CARGO_PKG_VERSION"),
            cpu: cpu.unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: kernel.map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        }
    }

    /// The start time as it can stand in a file name: `20260131T120000Z`.
    fn stamp(&self) -> String {
        self.started_at.replace(['-', ':'], "")
    }
}

/// The arguments, with what follows `--password` left out and no path before the program's name.
fn command_line() -> Vec<String> {
    let mut arguments: Vec<String> = std::env::args().collect();
    if let Some(program) = arguments.first_mut() {
        let name = Path::new(program.as_str()).file_name().map(|name| name.to_string_lossy());
        *program = name.unwrap_or_default().into_owned();
    }
    mask_password(&mut arguments);
    arguments
}

fn mask_password(arguments: &mut [String]) {
    let mut secret = false;
    for argument in arguments {
        if std::mem::replace(&mut secret, argument == "--password") {
            "***".clone_into(argument);
        } else if argument.starts_with("--password=") {
            "--password=***".clone_into(argument);
        }
    }
}

/// Writes `<folder>/<name>-<start>.json` and returns its path.
///
/// # Errors
/// When the folder cannot be made or the file not written.
pub fn write<T: Serialize>(
    folder: &Path,
    name: &str,
    circumstances: &Circumstances,
    result: &T,
) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("{name}-{}.json", circumstances.stamp()));
    let document = Document { benchmark: name, circumstances, result };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_reach_a_result() {
        let mut arguments =
            ["edits", "--password", "hidden", "--password=hidden", "--keep"].map(String::from);
        mask_password(&mut arguments);
        assert_eq!(arguments, ["edits", "--password", "***", "--password=***", "--keep"]);
    }
}
