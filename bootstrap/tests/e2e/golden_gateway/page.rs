//! `docs/golden-gateway.md`: what came of the replay.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::Outcome;
use super::purpose::{Verdict, verdicts as all_verdicts};

/// The cases of the specification, where they are recorded under another name.
const RECORDED_AS: &[(u32, &str)] = &[(19, "GE-11"), (20, "GE-12")];

/// How many cases the specification has.
const CASES: u32 = 40;

/// Compares the page with what came out, or writes it.
pub(crate) fn check(page: &str) {
    if std::env::var_os("GOLDEN_DIR").is_some() {
        // Other recordings, other page.
        println!("{page}");
        return;
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/golden-gateway.md");
    if std::env::var_os("UPDATE_GOLDEN_GATEWAY").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/golden-gateway.md is not what the replay gives; write it anew with \
         UPDATE_GOLDEN_GATEWAY=1 and look at what changed:\n{}",
        changed(&there, page)
    );
}

fn changed(there: &str, here: &str) -> String {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
        (there.lines().collect(), here.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}\n"));
    gone.chain(new.difference(&old).map(|line| format!("+ {line}\n"))).collect()
}

/// The page for these outcomes.
pub(crate) fn text(outcomes: &[Outcome]) -> String {
    let mut out = String::from(
        "# Recorded requests through the reference\n\n\
         Written by the test `golden_gateway`, which sends every recorded request of a stock gateway through ours under \
         `compat: shenyu`\nand compares the answer (status, headers, body, interim answers, whether the connection is closed) \
         and each request that reached an\nupstream (which one, request line, headers, body with its framing; in `keepalive-*` \
         also the connection). Both client strategies give\nthe same table. `spec-cases` is not recorded: cases of the \
         specification that have no recording, written in the same form. Which upstream is chosen by chance, or by its address,\nis not \
         compared: the addresses are others here.\n\n\
         | file | exchanges | checks | equal | different on purpose |\n|---|---|---|---|---|\n",
    );
    let mut all = Row::default();
    for file in files(outcomes) {
        let mut row = Row::default();
        outcomes.iter().filter(|outcome| outcome.file == file).for_each(|outcome| row.add(outcome));
        row.print(file, &mut out);
        all.join(&row);
    }
    all.print("all", &mut out);
    cases(outcomes, &mut out);
    verdicts(outcomes, &mut out);
    out
}

fn files(outcomes: &[Outcome]) -> Vec<&'static str> {
    let mut files = Vec::new();
    for outcome in outcomes {
        if !files.contains(&outcome.file) {
            files.push(outcome.file);
        }
    }
    files
}

#[derive(Default)]
struct Row {
    exchanges: usize,
    checks: usize,
    purpose: usize,
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        self.exchanges += outcome.exchanges;
        self.checks += outcome.checks;
        self.purpose += outcome.differing.len();
    }

    fn join(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.checks += other.checks;
        self.purpose += other.purpose;
    }

    fn print(&self, name: &str, out: &mut String) {
        let Self { exchanges, checks, purpose } = self;
        let equal = checks - purpose;
        let _ = writeln!(out, "| {name} | {exchanges} | {checks} | {equal} | {purpose} |");
    }
}

/// The forty cases of the specification with their outcome.
fn cases(outcomes: &[Outcome], out: &mut String) {
    out.push_str(
        "\n## The cases of the specification\n\n\
         Differences that every request has (see the first rows below) are not repeated here.\n\n\
         | case | records | outcome |\n|---|---|---|\n",
    );
    for number in 1..=CASES {
        let case = format!("GC-{number:02}");
        let recorded_as = RECORDED_AS.iter().find(|(at, _)| *at == number).map(|(_, id)| *id);
        let of_case: Vec<&Outcome> = outcomes
            .iter()
            .filter(|outcome| {
                let rest = outcome.id.strip_prefix(recorded_as.unwrap_or(&case));
                rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
                    && !outcome.file.starts_with("webclient")
            })
            .collect();
        let ids: Vec<&str> = of_case.iter().map(|outcome| outcome.id.as_str()).collect();
        let names: BTreeSet<&str> = of_case
            .iter()
            .flat_map(|outcome| &outcome.differing)
            .filter(|(_, verdict)| !verdict.everywhere)
            .map(|(_, verdict)| verdict.name)
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        assert!(!ids.is_empty() || std::env::var_os("GOLDEN_DIR").is_some(), "{case} is nowhere");
        let ids = match ids.len() {
            0..=8 => ids.join(", "),
            many => format!("{} … {} ({many})", ids[0], ids[many - 1]),
        };
        let outcome = if names.is_empty() { "as recorded".to_owned() } else { names.join("; ") };
        let _ = writeln!(out, "| {case} | {ids} | {outcome} |");
    }
}

fn verdicts(outcomes: &[Outcome], out: &mut String) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, verdict) in outcomes.iter().flat_map(|outcome| &outcome.differing) {
        *counts.entry(verdict.name).or_default() += 1;
    }
    if std::env::var_os("GOLDEN_DIR").is_none() {
        let idle: Vec<&str> = all_verdicts()
            .filter(|verdict| !counts.contains_key(verdict.name) && !verdict.may_be_idle)
            .map(|verdict| verdict.name)
            .collect();
        assert!(idle.is_empty(), "no recording differs like this any more: {idle:?}");
    }
    let count = |verdict: &Verdict| counts.get(verdict.name).copied().unwrap_or(0);
    out.push_str(
        "\n## Different on purpose\n\n| what | checks | decided in | ours |\n|---|---|---|---|\n",
    );
    for verdict in all_verdicts().filter(|verdict| count(verdict) > 0) {
        let Verdict { name, place, why, .. } = verdict;
        let _ = writeln!(out, "| {name} | {} | {place} | {why} |", count(verdict));
    }
}
