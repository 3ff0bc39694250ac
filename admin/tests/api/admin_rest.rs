//! Replays what a stock admin answered.
//!
//! Two lists say where we are not equal: [`NOT_YET`], which later work only shortens, and
//! [`differences::ON_PURPOSE`]. A call on the first list that has become equal fails the test.

pub(crate) mod differences;
pub(crate) mod stored_unchecked;

use std::{fs, path::Path};

use crate::{
    golden,
    replay::{Calls, NotYet, Replay, Summary},
    support::{Database, TestAdmin, Upstreams},
};

const fn not_yet(method: &'static str, path: &'static str, why: &'static str) -> NotYet {
    NotYet { calls: Calls::To(method, path), why }
}

const fn build_on(ids: &'static [&'static str], why: &'static str) -> NotYet {
    NotYet { calls: Calls::Named(ids), why }
}

pub(crate) const NOT_YET: &[NotYet] = &[
    not_yet("POST", "/appAuth/apply", "app keys"),
    not_yet("GET", "/appAuth/*", "app keys"),
    not_yet("POST", "/appAuth/*", "app keys"),
    not_yet("POST", "/selector/*/ai-proxy-apikey", "keys of the AI proxy"),
    not_yet("GET", "/selector/*/ai-proxy-apikey", "keys of the AI proxy"),
    not_yet("GET", "/dashboardUser", "users"),
    not_yet("POST", "/dashboardUser", "users"),
    not_yet("GET", "/dashboardUser/*", "users"),
    not_yet("PUT", "/dashboardUser/*", "users"),
    not_yet("DELETE", "/dashboardUser/batch", "users"),
    not_yet("GET", "/role", "roles"),
    not_yet("POST", "/role", "roles"),
    not_yet("GET", "/role/*", "roles"),
    not_yet("PUT", "/role/*", "roles"),
    not_yet("DELETE", "/role/batch", "roles"),
    not_yet("GET", "/resource", "resources"),
    not_yet("GET", "/resource/1346775491550474240", "resources"),
    not_yet("GET", "/shenyu-dict", "dictionary"),
    not_yet("POST", "/shenyu-dict", "dictionary"),
    not_yet("GET", "/shenyu-dict/all/*", "dictionary"),
    not_yet("PUT", "/shenyu-dict/*", "dictionary"),
    not_yet("POST", "/shenyu-dict/batchEnabled", "dictionary"),
    not_yet("DELETE", "/shenyu-dict/batch", "dictionary"),
    not_yet("GET", "/configs/exportByNamespace", "export and import"),
    not_yet("POST", "/configs/import", "export and import"),
    build_on(
        &[
            "login-lina",
            "lina-selector-create",
            "lina-selector-list",
            "lina-permissions",
            "login-disabled",
        ],
        "users: the user was made by a call",
    ),
];

/// The page in `docs` that shows how far the replay has come.
const PAGE: &str = "../docs/golden-coverage.md";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_s_answers_are_ours() {
    let _upstreams = Upstreams::bind().await;
    let mut tables = Vec::new();
    for database in [Database::Sqlite, Database::Postgres] {
        let admin = TestAdmin::on(database).await;
        let summary = replay(&admin).await;
        admin.stop().await;
        println!("{database:?}\n{}", summary.table());
        assert!(
            summary.faults.is_empty(),
            "differing on {database:?}:\n{}",
            summary.faults.join("\n")
        );
        tables.push(summary);
    }
    assert_eq!(tables[0].table(), tables[1].table(), "the stores differ");
    check_page(&tables[0]);
}

async fn replay(admin: &TestAdmin) -> Summary {
    let mut replay = Replay::new(admin, NOT_YET, differences::ON_PURPOSE);
    let mut summary = Summary::default();
    for recording in golden::admin_rest() {
        let outcome = replay.step(&recording).await;
        stored_unchecked::store(&mut replay, &recording).await;
        summary.add(&recording, &outcome);
    }
    summary
}

/// The page must say what the run found. `UPDATE_GOLDEN_COVERAGE=1` writes it.
fn check_page(summary: &Summary) {
    if !golden::folder().1 {
        return;
    }
    let page = page(summary);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_GOLDEN_COVERAGE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "{PAGE} is old: run the test with UPDATE_GOLDEN_COVERAGE=1");
}

fn page(summary: &Summary) -> String {
    let mut page = format!(
        "# Recordings of the reference's REST API\n\n\
         Written by the test `api::admin_rest`, which sends every recorded call of a stock admin to \
         ours, in order, on a fresh\ndatabase, and compares status, headers and body. SQLite and \
         PostgreSQL give the same table.\n\n{}\n## Not yet\n\n\
         | calls | what is missing |\n|---|---|\n",
        summary.table()
    );
    for entry in NOT_YET {
        page.push_str(&format!("| {} | {} |\n", entry.describe(), entry.why));
    }
    page.push_str(
        "\n## Different on purpose\n\n| call | where it is decided | why |\n|---|---|---|\n",
    );
    for difference in differences::ON_PURPOSE {
        let (seq, place, why) = (difference.seq, difference.place, difference.why);
        page.push_str(&format!("| {seq} | {place} | {why} |\n"));
    }
    page
}
