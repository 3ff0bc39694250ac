//! The client leaves at each point where a request waits.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::BodyExt;

use super::harness::{Answer, Harness};

/// Polls a request `polls` times and drops it, wherever it is. Says whether it was done by then.
fn cut(harness: &Harness, polls: usize) -> bool {
    let request = Harness::request("POST", "/a", Bytes::from_static(b"abc"));
    let served = async {
        let body = harness.driver.serve(request).await.into_body();
        body.collect().await.map(|_| ())
    };
    let mut served = pin!(served);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(result) = served.as_mut().poll(&mut cx) {
            result.unwrap();
            return true;
        }
    }
    false
}

#[tokio::test]
async fn guards_are_released_and_completion_runs_exactly_once() {
    const PLUGINS: &[(&str, &str)] = &[
        ("header-edit", "{}"),
        ("body-rewrite", "{}"),
        ("slow-call", r#"{"millis":0}"#),
        ("retry-around", "{}"),
        ("counter", "{}"),
        ("response-filter", "{}"),
    ];
    // Every hit that asked for its completion: all but header-edit.
    const WATCHED: usize = 5;
    let mut points = Vec::new();
    for polls in 0.. {
        let harness = Harness::with(PLUGINS);
        harness.upstream.answers(Answer::Refused);
        let done = cut(&harness, polls);
        assert_eq!(harness.watch.held(), 0, "a guard is held after {polls} polls");
        let completions = harness.watch.completions();
        let begun = completions.len();
        if done {
            assert_eq!(begun, WATCHED);
            assert!(completions.iter().all(|text| text.starts_with("Finished 200")));
            break;
        }
        assert!(completions.iter().all(|text| text.starts_with("ClientGone")), "{completions:?}");
        points.push(begun);
        assert!(polls < 100, "the request never ends");
    }
    // Before the first poll nothing has begun; the first wait is in the slow call, with the two
    // watched plugins up to it begun; from then on all have.
    assert_eq!(points[0], 0);
    assert_eq!(points[1], 2);
    assert!(points[2..].iter().all(|begun| *begun == WATCHED), "{points:?}");
    assert!(points.len() >= 6, "waits: call, body, attempt, between attempts, attempt: {points:?}");
}
