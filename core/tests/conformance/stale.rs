//! Kept connections that the upstream closes just when they are wanted.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use longmen_core::body::Body;
use longmen_core::error::{Reason, Retry};
use longmen_core::upstream::ClientOptions;
use tokio::join;

use crate::support::origin::{Conn, Origin, Received};
use crate::support::{Rig, Strategy, error, get, pattern, post, request, streamed, text, until};

conformance! {
    closed_before_the_request, closed_under_an_idempotent_request, closed_under_a_post,
    repeated_once_only, bodies_are_repeated_whole, large_bodies_are_not_repeated,
    not_repeated_once_answered, posts_keep_clear_of_the_upstreams_idle_limit,
}

/// A rig whose client has one kept connection.
async fn warm(
    strategy: Strategy,
) -> (Rig, Origin, std::sync::Arc<longmen_core::upstream::Endpoint>, Conn) {
    let rig = Rig::with(strategy, ClientOptions::default());
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("warm").await;
        conn
    };
    let client = async { text(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
    let (_, conn) = join!(client, upstream);
    (rig, origin, endpoint, conn)
}

#[derive(Clone, Copy, Debug)]
enum End {
    Fin,
    Rst,
}

const ENDS: [End; 2] = [End::Fin, End::Rst];

fn end(conn: Conn, how: End) {
    match how {
        End::Fin => conn.close(),
        End::Rst => conn.reset(),
    }
}

/// Accepts a connection and answers its request.
async fn serve(origin: &Origin) -> Received {
    let mut conn = origin.accept().await;
    let received = conn.request().await;
    conn.answer("served").await;
    received
}

async fn closed_before_the_request(strategy: Strategy) {
    for how in ENDS {
        for method in ["GET", "POST"] {
            let (rig, origin, endpoint, conn) = warm(strategy).await;
            end(conn, how);
            if method == "POST" {
                // Unused for long enough to be looked at again.
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            }
            let sent = request(&endpoint, method, "/2", Body::from("body"));
            let (response, received) = join!(rig.send(&endpoint, sent), serve(&origin));
            assert_eq!(text(response.unwrap()).await, "served", "{how:?} {method}");
            assert_eq!(received.body, b"body");
            assert_eq!(rig.stats().opened, 2);
        }
    }
}

async fn closed_under_an_idempotent_request(strategy: Strategy) {
    for how in ENDS {
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            let (rig, origin, endpoint, mut conn) = warm(strategy).await;
            let mut sent = request(&endpoint, method, "/2?a=b", Body::empty());
            sent.headers_mut().insert("x-mine", "1".parse().unwrap());
            let upstream = async {
                let first = conn.request().await;
                end(conn, how);
                (first, serve(&origin).await)
            };
            let (response, (first, second)) = join!(rig.send(&endpoint, sent), upstream);
            assert_eq!(response.unwrap().status(), 200, "{how:?} {method}");
            assert_eq!(first, second);
            assert!(!origin.has_another().await);
            let stats = rig.stats();
            assert_eq!((stats.opened, stats.replayed), (2, 1), "{stats:?}");
        }
    }
}

async fn closed_under_a_post(strategy: Strategy) {
    for how in ENDS {
        let (rig, origin, endpoint, mut conn) = warm(strategy).await;
        let sent = post(&endpoint, "/2", "paid once");
        let upstream = async {
            conn.request().await;
            end(conn, how);
        };
        let (result, ()) = join!(rig.send(&endpoint, sent), upstream);
        let error = error(result);
        assert_eq!((error.reason(), error.retry()), (Reason::UpstreamReset, Retry::IfIdempotent));
        assert!(!origin.has_another().await, "a POST must not be done twice");
        assert_eq!(rig.stats().replayed, 0);
        rig.until_unused().await;
    }
}

async fn posts_keep_clear_of_the_upstreams_idle_limit(strategy: Strategy) {
    const LIMIT: Duration = Duration::from_millis(600);
    let rig = Rig::with(strategy, ClientOptions::default());
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    // Without `Accept`, it goes by the raw client with either strategy, whose pool learns.
    let plain = |mut request: http::Request<Body>| {
        request.headers_mut().remove(http::header::ACCEPT);
        request
    };
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("first").await;
        conn
    };
    let (answer, conn) = join!(rig.send(&endpoint, plain(get(&endpoint, "/1"))), upstream);
    text(answer.unwrap()).await;
    tokio::time::sleep(LIMIT).await;
    conn.close();
    let seen = || {
        rig.client.sweep();
        rig.stats().idle == 0
    };
    until("the end is seen", seen).await;
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("known").await;
        conn
    };
    let (answer, mut conn) = join!(rig.send(&endpoint, plain(get(&endpoint, "/2"))), upstream);
    text(answer.unwrap()).await;
    // Young enough.
    let upstream = async {
        conn.request().await;
        conn.answer("kept").await;
    };
    let sent = plain(post(&endpoint, "/3", "paid once"));
    let (answer, ()) = join!(rig.send(&endpoint, sent), upstream);
    assert_eq!(text(answer.unwrap()).await, "kept");
    // The upstream may close it any moment now.
    tokio::time::sleep(LIMIT * 3 / 2).await;
    let sent = plain(post(&endpoint, "/4", "paid once"));
    let (answer, received) = join!(rig.send(&endpoint, sent), serve(&origin));
    assert_eq!(text(answer.unwrap()).await, "served");
    assert!(received.line().starts_with("POST /4 "), "{}", received.line());
    rig.until_unused().await;
}

async fn repeated_once_only(strategy: Strategy) {
    let (rig, origin, endpoint, mut conn) = warm(strategy).await;
    let upstream = async {
        conn.request().await;
        conn.close();
        let mut fresh = origin.accept().await;
        fresh.request().await;
        fresh.close();
    };
    let (result, ()) = join!(rig.send(&endpoint, get(&endpoint, "/2")), upstream);
    assert_eq!(error(result).reason(), Reason::UpstreamReset);
    assert!(!origin.has_another().await);
    rig.until_unused().await;
    assert_eq!(rig.stats().idle, 0);
}

async fn bodies_are_repeated_whole(strategy: Strategy) {
    for length in [1, 1 << 10, 60_000] {
        let (rig, origin, endpoint, mut conn) = warm(strategy).await;
        let body = pattern(length);
        let sent = request(&endpoint, "PUT", "/2", Body::from(body.clone()));
        let upstream = async {
            let first = conn.request().await;
            conn.reset();
            (first, serve(&origin).await)
        };
        let (response, (first, second)) = join!(rig.send(&endpoint, sent), upstream);
        assert_eq!(text(response.unwrap()).await, "served");
        assert!(first == second && second.body == body, "{length} bytes");
    }
}

async fn large_bodies_are_not_repeated(strategy: Strategy) {
    let (rig, origin, endpoint, mut conn) = warm(strategy).await;
    let (frames, body) = streamed();
    let sending = async move {
        for _ in 0..32 {
            // Ends early, once nobody reads it any more.
            if frames.send(Ok(Frame::data(Bytes::from(vec![b'x'; 8 << 10])))).await.is_err() {
                return;
            }
        }
    };
    let upstream = async {
        conn.head().await;
        conn.exactly(200 << 10).await;
        conn.close();
    };
    let sent = request(&endpoint, "PUT", "/2", body);
    let (result, (), ()) = join!(rig.send(&endpoint, sent), upstream, sending);
    assert_eq!(error(result).reason(), Reason::UpstreamReset);
    assert!(!origin.has_another().await, "never a part of a body");
    rig.until_unused().await;
}

async fn not_repeated_once_answered(strategy: Strategy) {
    let (rig, origin, endpoint, mut conn) = warm(strategy).await;
    let upstream = async {
        conn.request().await;
        conn.send("HTTP/1.1 20").await;
        conn.close();
        if !rig.is_hyper() {
            // reqwest does not tell whether a byte was answered; the request is idempotent.
            serve(&origin).await;
        }
    };
    let (result, ()) = join!(rig.send(&endpoint, get(&endpoint, "/2")), upstream);
    if rig.is_hyper() {
        assert_eq!(error(result).reason(), Reason::UpstreamReset);
    } else {
        assert_eq!(text(result.unwrap()).await, "served");
    }
    assert!(!origin.has_another().await);
}
