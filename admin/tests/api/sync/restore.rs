//! Databases that are older than they were: a backup brought back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use longmen_admin::config::StoreConfig;
use longmen_core::config::Secret;
use longmen_core::sync::Payload;
use longmen_core::test_util::postgres::fresh_database;
use tempfile::TempDir;

use super::gateway::{Gateway, Set};
use super::objects::{add_selector, begin, commit};
use super::postgres::{on, psql};
use crate::support::TestAdmin;

/// The names of the selectors in a set.
fn selectors(set: &Set) -> Vec<&str> {
    let lists = set.frames.iter().filter_map(|frame| match &frame.payload {
        Payload::Selector(list) => Some(list),
        _ => None,
    });
    lists.flatten().filter_map(|selector| selector.name.as_deref()).collect()
}

async fn on_file(path: &Path) -> TestAdmin {
    let path = path.to_owned();
    TestAdmin::with(|config| config.store = StoreConfig::Sqlite { path }).await
}

/// Adds a selector. Out: the version, and the epoch in which it counts.
async fn add(admin: &TestAdmin, name: &str) -> (u64, String) {
    let mut uow = begin(admin.running()).await;
    add_selector(&mut uow, name).await;
    let version = commit(uow).await;
    let set = Gateway::ours(admin.running(), "", 0).await.set().await;
    (version, set.mark.epoch)
}

/// A file with the selectors `kept` and `lost`, and its backup that holds `kept` alone.
struct Files {
    path: PathBuf,
    backup: PathBuf,
    epoch: String,
    /// The versions of both.
    kept: u64,
    lost: u64,
    _folder: TempDir,
}

impl Files {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (path, backup) = (folder.path().join("longmen.db"), folder.path().join("backup.db"));
        let admin = on_file(&path).await;
        let (kept, _) = add(&admin, "kept").await;
        admin.stop().await;
        // Closed, it is one file.
        assert!(!folder.path().join("longmen.db-wal").exists());
        fs::copy(&path, &backup).unwrap();
        let admin = on_file(&path).await;
        let (lost, epoch) = add(&admin, "lost").await;
        admin.stop().await;
        Self { path, backup, epoch, kept, lost, _folder: folder }
    }

    fn bring_back(&self) {
        fs::copy(&self.backup, &self.path).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_ahead_of_the_database_makes_everybody_start_anew() {
    let files = Files::new().await;
    files.bring_back();
    let admin = on_file(&files.path).await;
    let running = admin.running();
    let mut level = Gateway::ours(running, &files.epoch, files.kept).await;
    let none = level.set().await;
    assert!(none.frames.is_empty() && !none.mark.refresh, "it cannot be told from one in step");
    let mut stock = Gateway::stock(running).await;
    stock.so_far().await;

    let mut ahead = Gateway::ours(running, &files.epoch, files.lost).await;
    let all = ahead.set().await;
    assert!(all.mark.refresh);
    assert_ne!(all.mark.epoch, files.epoch);
    assert_eq!((all.mark.version, selectors(&all)), (files.kept, vec!["kept"]));
    let too = level.set().await;
    assert!(too.mark.refresh);
    assert_eq!((&too.mark.epoch, selectors(&too)), (&all.mark.epoch, vec!["kept"]));
    assert_eq!(stock.json().await["eventType"], "REFRESH");

    // Whoever comes later with the same claim finds it settled.
    let late = Gateway::ours(running, &files.epoch, files.lost).await.set().await;
    assert_eq!((late.mark.refresh, &late.mark.epoch), (true, &all.mark.epoch));
    // And what follows arrives as a change again.
    let (version, epoch) = add(&admin, "new").await;
    for gateway in [&mut ahead, &mut level] {
        let set = gateway.set().await;
        assert_eq!((set.mark.refresh, set.mark.version, &set.mark.epoch), (false, version, &epoch));
    }
    admin.stop().await;
}

/// The gateways of other admins hear of it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_of_all_admins_start_anew() {
    const BRING_BACK: &str = "DELETE FROM selector; DELETE FROM config_change WHERE version > 1; \
         UPDATE config_version SET version = 1 WHERE version > 1";
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let admin = on(&url).await;
    let (kept, _) = add(&admin, "kept").await;
    let (lost, epoch) = add(&admin, "lost").await;
    admin.stop().await;
    psql(&url, BRING_BACK).await;

    let (one, other) = (on(&url).await, on(&url).await);
    let mut level = Gateway::ours(other.running(), &epoch, kept).await;
    assert!(!level.set().await.mark.refresh);
    let mut ahead = Gateway::ours(one.running(), &epoch, lost).await;
    let (all, too) = (ahead.set().await, level.set().await);
    assert!(all.mark.refresh && too.mark.refresh);
    assert_ne!(all.mark.epoch, epoch);
    assert_eq!(all.mark.epoch, too.mark.epoch);
    one.stop().await;
    other.stop().await;
}

/// Runs the admin's program in an empty folder. Out: whether it went well, and what it said.
async fn admin_program(arguments: Vec<String>) -> (bool, String) {
    let run = move || {
        let folder = tempfile::tempdir().unwrap();
        let program = env!("CARGO_BIN_EXE_longmen-admin");
        Command::new(program).args(arguments).current_dir(&folder).output().unwrap()
    };
    let done = tokio::task::spawn_blocking(run);
    let done = tokio::time::timeout(std::time::Duration::from_secs(60), done).await;
    let output = done.expect("the program ends").unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), said.concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_marked_makes_gateways_in_step_start_anew() {
    let files = Files::new().await;
    files.bring_back();
    let mark = || {
        let path = files.path.display();
        admin_program(vec!["restore-mark".into(), format!("--shenyu.database.path={path}")])
    };
    let admin = on_file(&files.path).await;
    let (done, said) = mark().await;
    assert!(!done && said.contains("in use by another admin"), "{said}");
    let same = Gateway::ours(admin.running(), &files.epoch, files.kept).await.set().await;
    assert!(!same.mark.refresh, "nothing was marked");
    admin.stop().await;

    let (done, said) = mark().await;
    assert!(done && said.contains("versions count anew"), "{said}");
    let admin = on_file(&files.path).await;
    let all = Gateway::ours(admin.running(), &files.epoch, files.kept).await.set().await;
    assert!(all.mark.refresh);
    assert_ne!(all.mark.epoch, files.epoch);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_database_is_marked_under_its_admins() {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let admin = on(&url).await;
    let mut gateway = Gateway::ours(admin.running(), "", 0).await;
    let before = gateway.set().await.mark.epoch;
    let config = longmen_admin::config::AdminConfig {
        store: StoreConfig::Postgres { url: Secret::new(&url) },
        ..longmen_admin::config::AdminConfig::default()
    };
    longmen_admin::restore_mark(&config).await.unwrap();
    let all = gateway.set().await;
    assert!(all.mark.refresh);
    assert_ne!(all.mark.epoch, before);
    admin.stop().await;
}

#[tokio::test]
async fn what_cannot_be_marked_is_told() {
    for (arguments, part) in [
        (vec!["restore-mark"], ".data/longmen.db is not there, expected the one that was brought"),
        (vec!["restore-mark", "x"], "x: expected --key=value"),
        (vec!["import"], "import comes in a later version"),
        (vec!["serve"], "unknown command serve, expected restore-mark, or none to serve"),
    ] {
        let owned = arguments.iter().map(|text| (*text).to_owned()).collect();
        let (done, said) = admin_program(owned).await;
        assert!(!done && said.contains(part), "{arguments:?}: {said}");
    }
}
