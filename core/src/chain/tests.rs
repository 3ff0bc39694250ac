//! The contract of plugins, proven by plugins that exist only here.

mod complaints;
mod cut_off;
mod delivery;
mod ejection;
mod explained;
mod harness;
mod plugins;
mod time_limits;
mod upstreams;

use bytes::Bytes;
use http::StatusCode;

use harness::{Answer, Harness, sse};

#[tokio::test]
async fn a_header_edit_reaches_the_upstream_and_the_client() {
    let harness = Harness::new("header-edit", "{}");
    let (status, headers, body) = harness.get("/a").await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"hello"[..]));
    assert_eq!(headers["x-edited"], "answer");
    assert_eq!(harness.upstream.heads()[0].headers["x-edited"], "request");
}

#[tokio::test]
async fn a_whole_body_is_rewritten_and_its_length_follows() {
    let harness = Harness::new("body-rewrite", "{}");
    let (status, _, body) = harness.post("/a", Bytes::from_static(b"abc")).await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"hello"[..]));
    assert_eq!(harness.upstream.bodies(), [Bytes::from_static(b"ABC!")]);
    assert_eq!(harness.upstream.heads()[0].headers["content-length"], "4");
    let (status, ..) = harness.post("/a", Bytes::from(vec![b'x'; 1025])).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "past the limit of the rule");
}

#[tokio::test]
async fn a_response_filter_sees_events_as_they_come_and_holds_none_back() {
    let harness = Harness::new("response-filter", "{}");
    let (events, answer) = sse();
    harness.upstream.answers(Answer::Response(answer));
    let response = harness.serve("GET", "/events", Bytes::new()).await;
    let mut body = response.into_body();
    for text in ["one", "two"] {
        events.send(Bytes::from(format!("data: {text}\n\n"))).await.unwrap();
        let chunk = harness::next_chunk(&mut body).await;
        assert_eq!(chunk, format!("DATA: {}\n\n", text.to_uppercase()));
    }
}

#[tokio::test]
async fn a_canned_answer_never_reaches_the_upstream_but_its_response_hooks_run() {
    let harness = Harness::with(&[("canned", "{}"), ("header-edit", "{}")]);
    let (status, headers, body) = harness.get("/a").await;
    assert_eq!((status, &body[..]), (StatusCode::IM_A_TEAPOT, &b"canned"[..]));
    assert!(harness.upstream.heads().is_empty());
    assert!(!headers.contains_key("x-edited"), "header-edit comes later in the chain");
}

#[tokio::test]
async fn a_slow_external_call_is_bounded_by_the_plugin() {
    let harness = Harness::new("slow-call", r#"{"millis":30}"#);
    let (status, ..) = harness.get("/a").await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    let quick = Harness::new("slow-call", r#"{"millis":0}"#);
    assert_eq!(quick.get("/a").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_wrapper_retries_while_the_body_can_be_replayed() {
    let harness = Harness::new("retry-around", "{}");
    harness.upstream.answers(Answer::Refused);
    harness.upstream.answers(Answer::Refused);
    let (status, _, body) = harness.post("/a", Bytes::from_static(b"again")).await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &b"hello"[..]));
    assert_eq!(harness.upstream.bodies(), vec![Bytes::from_static(b"again"); 3]);
    assert_eq!(harness.watch.attempts(), ["1:upstream_connect", "2:upstream_connect", "3:200"]);
}

#[tokio::test]
async fn completion_runs_once_with_what_happened() {
    let harness = Harness::new("counter", "{}");
    harness.get("/a").await;
    assert_eq!(harness.watch.completions(), ["Finished 200 attempts=1 bytes=5"]);
    harness.upstream.answers(Answer::Refused);
    let (status, ..) = harness.get("/a").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let second = &harness.watch.completions()[1];
    assert!(second.starts_with("Finished 502 attempts=1"), "{second}");
    drop(harness.serve("GET", "/a", Bytes::new()).await);
    assert_eq!(harness.watch.completions()[2], "ClientGone 200 attempts=1 bytes=0");
}

#[tokio::test]
async fn a_guard_judges_both_forms_of_the_path_and_the_stricter_counts() {
    let harness = Harness::new("guard", "{}");
    for path in ["/internal/x", "/%69nternal/x", "//internal/x", "/internal;a=b/x"] {
        assert_eq!(harness.get(path).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(harness.get("/public/x").await.0, StatusCode::OK);
    assert_eq!(harness.upstream.heads().len(), 1, "what is refused reaches nobody");
}

#[tokio::test]
async fn a_guard_judges_both_forms_of_a_path_that_was_moved() {
    let harness = Harness::with(&[("mover", "{}"), ("guard", "{}")]);
    for path in ["/moved/internal/x", "/moved/%69nternal/x", "/moved//internal/x"] {
        assert_eq!(harness.get(path).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(harness.get("/moved/public/x").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_client_cannot_take_away_what_a_plugin_set() {
    let harness = Harness::new("header-edit", "{}");
    let mut request = Harness::request("GET", "/a", Bytes::new());
    for (name, value) in [("connection", "close, X-Edited, X-Mine"), ("x-mine", "1")] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    assert_eq!(harness.driver.serve(request).await.status(), StatusCode::OK);
    let head = &harness.upstream.heads()[0];
    assert_eq!(head.headers["x-edited"], "request");
    assert!(!head.headers.contains_key("x-mine") && !head.headers.contains_key("connection"));
}

#[tokio::test]
async fn a_path_that_a_plugin_made_is_checked_like_a_client_s() {
    let harness = Harness::new("mover", "{}");
    // The rules for clients stand before the chain; here the chain is asked directly.
    let response = harness.serve("GET", "/a/%2e%2e/b", Bytes::new()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(harness.upstream.heads().is_empty());
}

#[tokio::test]
async fn an_answer_to_head_is_finished_though_its_body_is_not_sent() {
    let harness = Harness::new("counter", "{}");
    harness.upstream.answers(Answer::Refused);
    let response = harness.serve("HEAD", "/a", Bytes::new()).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    drop(response);
    let told = &harness.watch.completions()[0];
    assert!(told.starts_with("Finished 502"), "{told}");
}

#[tokio::test]
async fn what_does_not_match_costs_no_hit() {
    let harness = Harness::new("counter", "{}");
    harness.get("/unmatched/x").await;
    assert!(harness.watch.completions().is_empty());
}
