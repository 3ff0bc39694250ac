//! Recordings of the reference: what was sent to it and what it answered.
//!
//! They lie in `tests/golden`; `GOLDEN_DIR` points at another folder of the same form.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

/// One call and its answer.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Recording {
    /// Its place over all files.
    pub(crate) seq: u32,
    /// What it shows.
    pub(crate) id: String,
    pub(crate) request: Request,
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// The answer, when it is JSON.
    pub(crate) body: Option<Value>,
    /// The answer, when it is not.
    pub(crate) text: Option<String>,
    /// The file it is from.
    #[serde(skip)]
    pub(crate) file: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    pub(crate) content_type: Option<String>,
    /// Absent: a good one; `none`: none; else the token itself.
    pub(crate) token: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// The folder of the recordings, and whether it is the one of this repository.
pub(crate) fn folder() -> (PathBuf, bool) {
    match std::env::var_os("GOLDEN_DIR") {
        Some(folder) => (folder.into(), false),
        None => (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), true),
    }
}

/// The lines of one file of the recordings.
pub(crate) fn lines(file: &str) -> Vec<Value> {
    let path = folder().0.join(file);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("recording {}: {error}", path.display()));
    let lines: Vec<Value> = text
        .lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), index + 1))
        })
        .collect();
    assert!(!lines.is_empty(), "{} is empty", path.display());
    lines
}

/// All calls of `admin-rest`, in the order in which they were made.
pub(crate) fn admin_rest() -> Vec<Recording> {
    let folder = folder().0.join("admin-rest");
    let files = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("recordings in {}: {error}", folder.display()));
    let mut recordings = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (index, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let value: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{name}:{}: {error}", index + 1));
            // Other lines describe files, such as those inside an exported archive.
            if value.get("seq").is_none() || value.get("request").is_none() {
                continue;
            }
            let mut recording: Recording = serde_json::from_value(value)
                .unwrap_or_else(|error| panic!("{name}:{}: {error}", index + 1));
            recording.file.clone_from(&name);
            recordings.push(recording);
        }
    }
    assert!(!recordings.is_empty(), "no recordings in {}", folder.display());
    recordings.sort_by_key(|recording| recording.seq);
    recordings
}
