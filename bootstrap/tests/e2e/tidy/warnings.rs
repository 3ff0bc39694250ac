//! What clients and upstreams can bring about is logged at `warn` and above at a bounded rate only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Lines at `warn` and above without a throttle, by file: how many, and what bounds them.
const BOUNDED_OTHERWISE: [(&str, usize, &str); 15] = [
    ("bootstrap/src/descriptors.rs", 2, "at the start"),
    ("bootstrap/src/handover.rs", 2, "once"),
    ("bootstrap/src/handover/following.rs", 5, "once, at the start"),
    ("bootstrap/src/keep.rs", 2, "once, at the start"),
    ("bootstrap/src/stop.rs", 1, "at the stop"),
    ("bootstrap/src/sync/link.rs", 1, "the admin, with growing waits"),
    ("bootstrap/src/sync/stock.rs", 4, "the admin"),
    ("bootstrap/src/worker.rs", 4, "once for each worker, and then it stops"),
    ("core/src/config/problem.rs", 1, "at the start"),
    ("core/src/lifecycle.rs", 3, "at the stop"),
    ("core/src/snapshot/publish.rs", 1, "the admin, once for each fault"),
    ("core/src/telemetry/metrics.rs", 1, "once"),
    ("core/src/upstream/client/connect/tls.rs", 1, "once for each root certificate"),
    ("core/src/upstream/client/dns/system.rs", 1, "where the system's files change"),
    ("core/src/upstream/endpoint.rs", 1, "a probe in an interval"),
];

/// So many lines above the macro the throttle is asked.
const ABOVE: usize = 8;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("tests") || name.starts_with("test_util") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// The lines of a source that log at `warn` or above and ask no throttle.
fn unbounded(code: &str) -> Vec<usize> {
    let lines: Vec<&str> = code.lines().collect();
    let logs = |line: &str| ["warn!(", "error!("].iter().any(|call| line.contains(call));
    let asked = |at: usize| {
        lines[at.saturating_sub(ABOVE)..=at].iter().any(|line| line.contains(".pass()"))
    };
    (0..lines.len())
        .filter(|at| logs(lines[*at]) && !lines[*at].trim_start().starts_with("//") && !asked(*at))
        .map(|at| at + 1)
        .collect()
}

#[test]
fn every_warning_has_a_bound() {
    let root = root();
    let mut files = Vec::new();
    for folder in ["bootstrap", "core", "plugins"] {
        sources(&root.join(folder).join("src"), &mut files);
    }
    let mut found = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("UTF-8");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = unbounded(code);
        if !lines.is_empty() {
            let name = file.strip_prefix(&root).expect("in the workspace");
            found.insert(name.to_string_lossy().into_owned(), lines);
        }
    }
    let mut wrong = Vec::new();
    for (file, lines) in &found {
        let allowed = BOUNDED_OTHERWISE.iter().find(|(name, ..)| name == file);
        if allowed.is_none_or(|(_, count, _)| *count != lines.len()) {
            wrong.push(format!("{file}: lines {lines:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "logged at warn or above without a `Throttle`; use one, or say here what bounds it: {wrong:#?}"
    );
}

#[test]
fn lines_without_a_throttle_are_seen() {
    assert_eq!(unbounded("fn f() {\n    warn!(\"x\");\n}"), [2]);
    let bounded = "if let Some(left_out) = lines.pass() {\n    warn!(\"x{left_out}\");\n}";
    assert!(unbounded(bounded).is_empty());
    assert!(unbounded("// as warn!(..) does\n").is_empty());
}
