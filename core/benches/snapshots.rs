//! What snapshots cost: time to build one, to publish an edit, memory, and matching in between.
//!
//! ```sh
//! cargo bench -p longmen-core --bench snapshots -- [rules]...
//! ```
//!
//! Plain figures rather than statistics: each line is one run. Memory is the growth of the resident
//! set.

use std::time::{Duration, Instant};

use longmen_core::model::Rule;
use longmen_core::snapshot::{ConfigState, Dirty, UpstreamMode};
use longmen_core::sync::{Event, Frame, Payload};

#[path = "table.rs"]
#[expect(dead_code, reason = "the other benchmark uses the rest")]
mod table;

use table::{Kind, Layout, Table};

const EDITS: usize = 1_000;

fn main() {
    // Cargo hands over flags of its own.
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![1, 100, 10_000, 100_000] } else { asked };
    println!(
        "| rules | kind | layout | build | on the CPU | plain objects per rule beyond its fields | snapshot per rule | \
         edit p50 | p99 | max | match p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for size in sizes {
        for layout in [Layout::OneSelector, Layout::ManySelectors] {
            for kind in Kind::ALL {
                // Compiling expressions is slow and needs much memory, which is known.
                if kind.is_regex() && size > 10_000 {
                    continue;
                }
                line(kind, layout, size);
            }
        }
    }
}

fn line(kind: Kind, layout: Layout, size: usize) {
    let frames = table::frames(kind, layout, size);
    let fields: usize = frames.iter().map(field_bytes).sum();
    let before = memory();
    let mut state = ConfigState::default();
    for frame in &frames {
        state.apply(frame, UpstreamMode::Auto, &mut Dirty::default());
    }
    let plain = (memory() - before).saturating_sub(fields) / size;
    drop(state);
    let before = memory();
    let cpu_before = cpu_time();
    let started = Instant::now();
    let mut table = Table::publish(&frames);
    let build = started.elapsed();
    let on_cpu = cpu_time() - cpu_before;
    let grown = memory().saturating_sub(before);
    let snapshot = (grown.saturating_sub(fields) / size).saturating_sub(plain);
    drop(frames);
    for number in (0..size).step_by(1 + size / 1_000) {
        let request = table::request(kind, layout, number);
        assert!(table.choose(&request), "{} is not found", request.path);
    }
    let mut edits = Vec::with_capacity(EDITS);
    let mut matches = Vec::with_capacity(EDITS);
    for step in 0..EDITS {
        let number = step.wrapping_mul(2_654_435_761) % size;
        let rule = table::edited(kind, layout, number, step);
        let frame = Frame { event: Event::Update, payload: Payload::Rule(vec![rule]), mark: None };
        edits.push(table.edit(&[frame]));
        let request = table::request(kind, layout, (number + 1) % size);
        let started = Instant::now();
        // Some are moved by then.
        std::hint::black_box(table.choose(&request));
        matches.push(started.elapsed());
    }
    edits.sort_unstable();
    matches.sort_unstable();
    let at = |list: &[Duration], share: usize| list[(list.len() * share / 100).min(list.len() - 1)];
    println!(
        "| {size} | {} | {} | {build:.2?} | {on_cpu:.2?} | {plain} B | {snapshot} B | {:.1?} | {:.1?} | {:.1?} | {:.0?} | {:.0?} |",
        kind.name(),
        layout.name(),
        at(&edits, 50),
        at(&edits, 99),
        at(&edits, 100),
        at(&matches, 50),
        at(&matches, 99),
    );
}

/// The UTF-8 bytes of the rules of a frame, by what is configured.
fn field_bytes(frame: &Frame) -> usize {
    let Payload::Rule(rules) = &frame.payload else { return 0 };
    rules.iter().map(of_rule).sum()
}

fn of_rule(rule: &Rule) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let conditions = rule.conditions().iter().map(|condition| {
        let names = condition.param_type.len() + condition.operator.len();
        names + text(&condition.param_name) + text(&condition.param_value)
    });
    let texts = [&rule.handle, &rule.name, &rule.namespace_id].into_iter().map(text);
    let ids = rule.id.len() + rule.selector_id.len() + rule.plugin_name.len();
    ids + texts.sum::<usize>() + conditions.sum::<usize>()
}

/// The resident set, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: usize =
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default();
    kib * 1_024
}

/// The time this thread was on a CPU, which other processes do not lengthen.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}
