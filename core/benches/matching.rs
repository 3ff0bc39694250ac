//! How long it takes to find selector and rule.
//!
//! ```sh
//! cargo bench -p longmen-core --bench matching             # up to 10,000 rules
//! LONGMEN_BENCH_RULES=1000000 cargo bench -p longmen-core --bench matching -- static
//! ```
//!
//! `first`, `middle`, `last` and `none` say which rule takes the request; `spread` goes through
//! 4,096 rules all over the table, so that neither they nor the places that lead there are at hand.
//! `repeated` has one path again and again, with the match caches off and on.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use longmen_core::matcher::{IndexOptions, MatchCacheOptions};
use longmen_core::snapshot::{MatchingOptions, PublisherOptions};

#[path = "table.rs"]
#[expect(dead_code, reason = "the other benchmark uses the rest")]
mod table;

use table::{Kind, Layout, Table};

fn sizes() -> Vec<usize> {
    let asked = std::env::var("LONGMEN_BENCH_RULES").ok();
    asked.map_or_else(
        || vec![1, 100, 10_000],
        |sizes| sizes.split(',').map(|size| size.trim().parse().unwrap()).collect(),
    )
}

fn matching(criterion: &mut Criterion) {
    for size in sizes() {
        for layout in [Layout::OneSelector, Layout::ManySelectors] {
            for kind in Kind::ALL {
                if kind.is_regex() && size > 10_000 {
                    continue;
                }
                positions(criterion, kind, layout, size);
            }
        }
    }
}

fn positions(criterion: &mut Criterion, kind: Kind, layout: Layout, size: usize) {
    let name = format!("{}, {}", kind.name(), layout.name());
    let mut group = criterion.benchmark_group(name);
    // Made when something of the group is asked for at all.
    let table = std::cell::OnceCell::new();
    let table = || table.get_or_init(|| Table::publish(&table::frames(kind, layout, size)));
    for (at, number) in [("first", 0), ("middle", size / 2), ("last", size - 1)] {
        group.bench_function(BenchmarkId::new(at, size), |bencher| {
            let request = table::request(kind, layout, number);
            assert!(table().choose(&request), "{} is not found", request.path);
            bencher.iter(|| table().choose(black_box(&request)));
        });
    }
    group.bench_function(BenchmarkId::new("none", size), |bencher| {
        let request = table::unknown(kind, layout);
        bencher.iter(|| table().choose(black_box(&request)));
    });
    group.bench_function(BenchmarkId::new("spread", size), |bencher| {
        let numbers = (0..4_096_usize).map(|step| step.wrapping_mul(2_654_435_761) % size);
        let requests: Vec<_> = numbers.map(|n| table::request(kind, layout, n)).collect();
        let mut at = 0;
        let next = || {
            at = (at + 1) % requests.len();
            &requests[at]
        };
        table().choose(&requests[0]);
        bencher.iter_batched(next, |request| table().choose(request), BatchSize::SmallInput);
    });
}

/// Where the candidates are dear: expressions in which nothing can be looked for.
fn caches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("coreless expressions, 1 selector");
    for size in [50, 200] {
        for (name, cache) in
            [("repeated, off", MatchCacheOptions::off()), ("repeated, on", Default::default())]
        {
            let index = IndexOptions { cache, ..IndexOptions::default() };
            let matching = MatchingOptions { selectors: index, rules: index };
            let options = PublisherOptions { matching, ..PublisherOptions::default() };
            let frames = table::coreless(size);
            let table = Table::publish_with(&frames, options);
            let request = table::coreless_request(size / 2);
            assert!(table.choose(&request), "{} is not found", request.path);
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter(|| table.choose(black_box(&request)));
            });
            group.bench_function(
                BenchmarkId::new(format!("unique{}", &name[8..]), size),
                |bencher| {
                    let mut number = 0_u64;
                    let unique = || {
                        number += 1;
                        table::path(format!("/m0/{number}/none"))
                    };
                    bencher.iter_batched(
                        unique,
                        |request| table.choose(&request),
                        BatchSize::SmallInput,
                    );
                },
            );
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = matching, caches
}
criterion_main!(benches);
