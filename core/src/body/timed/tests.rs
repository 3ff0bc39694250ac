//! Time limits of bodies, by a paused clock.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::BodyTimes;
use crate::body::{Body, BodyError};

fn fed(times: BodyTimes) -> (mpsc::Sender<Bytes>, Body) {
    struct Receiver(mpsc::Receiver<Bytes>);
    impl http_body::Body for Receiver {
        type Data = Bytes;
        type Error = BodyError;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }
    let (sender, receiver) = mpsc::channel(64);
    (sender, Body::boxed(Receiver(receiver)).timed(times))
}

const SECOND: Duration = Duration::from_secs(1);

fn idle(seconds: u32) -> BodyTimes {
    BodyTimes { idle: Some(SECOND * seconds), end: None }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_moves_is_left_alone_and_one_that_stands_is_not() {
    let (sender, mut body) = fed(idle(3));
    let started = Instant::now();
    let feeding = tokio::spawn(async move {
        for _ in 0..20 {
            sleep(SECOND * 2).await;
            sender.send(Bytes::from_static(b"x")).await.unwrap();
        }
        sleep(SECOND * 60).await;
        drop(sender);
    });
    for _ in 0..20 {
        assert!(body.frame().await.unwrap().is_ok());
    }
    assert_eq!(started.elapsed().as_secs(), 40);
    let error = body.frame().await.unwrap().unwrap_err();
    assert!(matches!(error, BodyError::Stalled { millis: 3000 }), "{error}");
    assert_eq!(started.elapsed().as_secs(), 43, "counted from the last frame");
    feeding.abort();
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_the_senders_fault() {
    let (sender, mut body) = fed(idle(3));
    for _ in 0..3 {
        sender.send(Bytes::from_static(b"x")).await.unwrap();
    }
    for _ in 0..3 {
        sleep(SECOND * 10).await;
        assert!(body.frame().await.unwrap().is_ok());
    }
    drop(sender);
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_request_ends_a_body_that_flows_or_stands() {
    let end = Some(Instant::now() + SECOND * 5);
    let (sender, mut body) = fed(BodyTimes { idle: Some(SECOND * 3), end });
    sender.send(Bytes::from_static(b"x")).await.unwrap();
    assert!(body.frame().await.unwrap().is_ok());
    sleep(SECOND * 3).await;
    let error = body.frame().await.unwrap().unwrap_err();
    assert!(matches!(error, BodyError::OverTime), "the end comes before the idle limit: {error}");
    let (sender, mut flowing) = fed(BodyTimes { idle: None, end });
    sender.send(Bytes::from_static(b"x")).await.unwrap();
    assert!(matches!(flowing.frame().await.unwrap(), Err(BodyError::OverTime)));
}

#[tokio::test]
async fn a_body_in_memory_has_no_timer() {
    let body = Body::from("hello").timed(idle(1));
    assert!(body.replay().is_some());
}
