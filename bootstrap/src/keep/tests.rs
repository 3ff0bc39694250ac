use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use longmen_core::snapshot::saved::Objects;
use longmen_core::snapshot::{ConfigState, Position};

use super::*;

fn kept() -> Kept {
    let objects = Objects::of(&ConfigState::default());
    Kept { objects, position: Position::default(), local_changes: 0, restored_ms: None }
}

fn head(namespace: &str) -> SavedHead {
    let namespace = namespace.to_owned();
    SavedHead { namespace, epoch: "e".into(), version: 7, saved_ms: 1, local_changes: 0 }
}

fn reason(path: &Path) -> String {
    match load(path, "ns").unwrap_err() {
        Unused::Bad(reason) => reason,
        Unused::NoFile => "no file".to_owned(),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_stored_is_loaded_and_nobody_else_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made").join("g.snapshot");
    assert!(load(&path, "ns").unwrap().is_none());
    for _ in 0..2 {
        store(&path, &head("ns"), &kept()).unwrap();
    }
    assert_eq!(load(&path, "ns").unwrap().unwrap().head, head("ns"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(path.parent().unwrap()), ["g.snapshot"], "nothing is left beside it");
    assert!(reason_of_another(&path).contains("namespace: expected \"other\", found \"ns\""));
}

fn reason_of_another(path: &Path) -> String {
    match load(path, "other").unwrap_err() {
        Unused::Bad(reason) => reason,
        Unused::NoFile => String::new(),
    }
}

#[test]
fn a_file_that_others_may_read_or_write_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.snapshot");
    store(&path, &head("ns"), &kept()).unwrap();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let expected = format!("expected mode 600, found {mode:o}");
        assert!(reason(&path).contains(&expected), "{}", reason(&path));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(load(&path, "ns").unwrap().is_some());
}

#[test]
fn what_is_no_file_holds_nothing_up_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(reason(folder.path()), "no file");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(reason(&pipe), "no file");
    let around = folder.path().join("around");
    std::os::unix::fs::symlink("around", &around).unwrap();
    assert!(!reason(&around).is_empty());
}

#[test]
fn what_killed_processes_left_is_swept_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.snapshot");
    let mut ended = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let gone = ended.id();
    ended.wait().unwrap();
    let alive = std::process::id();
    let left = [
        "g.snapshot".to_owned(),
        format!("g.snapshot.{alive}.new"),
        "g.snapshot.ignored".to_owned(),
        "g.snapshot.x.new".to_owned(),
        format!("other.{gone}.new"),
    ];
    for name in left.iter().chain([&format!("g.snapshot.{gone}.new")]) {
        fs::write(folder.path().join(name), "").unwrap();
    }
    sweep(&path);
    let mut expected = left.to_vec();
    expected.sort();
    assert_eq!(names(folder.path()), expected);
}
