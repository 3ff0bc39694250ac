//! Replays what a stock admin answered.
//!
//! Two lists say where we are not equal: [`NOT_YET`], which later work only shortens, and
//! [`differences::ON_PURPOSE`]. A call on the first list that has become equal fails the test.

mod differences;

use std::{fs, path::Path};

use crate::{
    golden,
    replay::{NotYet, Replay, Summary},
    support::{TestAdmin, Upstreams},
};

const fn not_yet(method: &'static str, path: &'static str, why: &'static str) -> NotYet {
    NotYet { method, path, why }
}

const NOT_YET: &[NotYet] = &[not_yet("POST", "/plugin-template", "writes of plugin templates")];

/// The page in `docs` that shows how far the replay has come.
const PAGE: &str = "../docs/golden-coverage.md";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_s_answers_are_ours() {
    let _upstreams = Upstreams::bind().await;
    let admin = TestAdmin::start().await;
    let summary = replay(&admin).await;
    admin.stop().await;
    println!("{}", summary.table());
    assert!(summary.faults.is_empty(), "differing:\n{}", summary.faults.join("\n"));
    check_page(&summary);
}

async fn replay(admin: &TestAdmin) -> Summary {
    let mut replay = Replay::new(admin, NOT_YET, differences::ON_PURPOSE);
    let mut summary = Summary::default();
    for recording in golden::admin_rest() {
        let outcome = replay.step(&recording).await;
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
         | method | path | what is missing |\n|---|---|---|\n",
        summary.table()
    );
    for NotYet { method, path, why } in NOT_YET {
        page.push_str(&format!("| {method} | `{path}` | {why} |\n"));
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
