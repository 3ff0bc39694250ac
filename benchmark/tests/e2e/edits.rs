//! The measure of edits against an admin and a gateway whose delay is known.

use std::time::Duration;

use longmen_benchmark::edits::{EditsResult, Operation, Plan, measure};

use crate::fake::{Fake, Flaw};

fn plan(fake: &Fake) -> Plan {
    Plan {
        admin: fake.url.clone(),
        user: "admin".into(),
        password: "secret".into(),
        gateway: fake.url.clone(),
        upstreams: vec![fake.upstream()],
        selectors: 7,
        rules: 3,
        rate: 200,
        connections: 2,
        repeats: 3,
        poll_us: 100,
        pause_ms: 0,
        setup_connections: 2,
        limit_ms: 300,
        keep: false,
    }
}

async fn run(plan: Plan) -> EditsResult {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, measure(plan)).await.expect("within the limit").expect("measured")
}

fn effects(result: &EditsResult) -> Vec<(Operation, u64, u32)> {
    let of = |it: &longmen_benchmark::edits::OperationResult| {
        (it.operation, it.effect.count, it.failures)
    };
    result.operations.iter().map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_is_measured_and_all_is_taken_away_again() {
    let fake = Fake::start(Flaw::None).await;
    let result = run(plan(&fake)).await;
    assert!(result.clean(), "{}", result.table());
    assert_eq!(
        effects(&result),
        [
            (Operation::Create, 3, 0),
            (Operation::Update, 3, 0),
            (Operation::Disable, 3, 0),
            (Operation::Delete, 3, 0)
        ]
    );
    assert!(result.load.latency.count > 0, "the load ran");
    let tables = fake.state.tables();
    assert!(tables.selectors.is_empty() && tables.rules.is_empty(), "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_stay_if_asked_to() {
    let fake = Fake::start(Flaw::None).await;
    let result = run(Plan { keep: true, rate: 0, repeats: 1, ..plan(&fake) }).await;
    assert!(result.clean(), "{}", result.table());
    assert_eq!(result.load.latency.count, 0, "no load was asked for");
    let tables = fake.state.tables();
    assert_eq!(tables.rules.len(), 21);
    assert!(tables.selectors.values().all(|upstreams| *upstreams == [fake.upstream()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_effect_is_measured_as_late_as_it_is() {
    let fake = Fake::start(Flaw::Late(Duration::from_millis(40))).await;
    let result = run(Plan { repeats: 2, limit_ms: 5_000, ..plan(&fake) }).await;
    assert!(result.clean(), "{}", result.table());
    for entry in &result.operations {
        // The fake counts from when it got the edit, the measure from its answer.
        assert!((20_000..2_000_000).contains(&entry.effect.p50_us), "{}", result.table());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_without_effect_is_a_failure() {
    let fake = Fake::start(Flaw::KeepsDeleted).await;
    let result = run(plan(&fake)).await;
    assert!(!result.clean());
    assert_eq!(effects(&result)[2..], [(Operation::Disable, 3, 0), (Operation::Delete, 0, 3)]);
    let example = &result.operations[3].examples[0];
    assert!(example.contains("moved0") && example.contains("NotServed"), "{example}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_answer_to_the_load_is_a_failure() {
    let fake = Fake::start(Flaw::Sheds).await;
    let result = run(plan(&fake)).await;
    assert!(!result.clean());
    let (what, count) = result.load.failures.first_key_value().expect("a failure");
    assert!(what.starts_with("status 503") && *count > 0, "{what}");
}

#[tokio::test]
async fn an_admin_that_refuses_ends_the_measure_with_its_words() {
    let fake = Fake::start(Flaw::None).await;
    let error = measure(Plan { selectors: 0, ..plan(&fake) }).await.expect_err("no selectors");
    assert!(error.to_string().contains("selectors"), "{error:#}");
    let nobody = Plan { admin: "http://127.0.0.1:1".into(), ..plan(&fake) };
    let error = measure(nobody).await.expect_err("nobody listens on port 1");
    let text = format!("{error:#}");
    assert!(text.contains("log in") && !text.contains("secret"), "{text}");
}
