//! What a second attempt gets.

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::Replay;
use crate::body::{Body, BodyError};

type Fed = mpsc::UnboundedSender<Result<Frame<Bytes>, BodyError>>;

/// A body that is fed from outside.
fn fed() -> (Fed, Body) {
    struct Receiver(mpsc::UnboundedReceiver<Result<Frame<Bytes>, BodyError>>);
    impl http_body::Body for Receiver {
        type Data = Bytes;
        type Error = BodyError;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            self.0.poll_recv(cx)
        }
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Body::boxed(Receiver(receiver)))
}

fn send(fed: &Fed, text: &'static str) {
    fed.send(Ok(Frame::data(Bytes::from_static(text.as_bytes())))).unwrap();
}

async fn next(body: &mut Body) -> String {
    let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
    String::from_utf8(data.to_vec()).unwrap()
}

#[tokio::test]
async fn a_second_attempt_gets_every_byte_and_the_first_no_more() {
    let (sender, body) = fed();
    let replay = Replay::new(body, 100).unwrap();
    let mut first = replay.attempt().unwrap();
    send(&sender, "one ");
    assert_eq!(next(&mut first).await, "one ");
    let mut second = replay.attempt().unwrap();
    send(&sender, "two ");
    assert!(first.frame().await.unwrap().is_err(), "the body belongs to the second");
    assert_eq!(next(&mut second).await, "one ");
    assert_eq!(next(&mut second).await, "two ");
    send(&sender, "three");
    drop(sender);
    let third = replay.attempt().unwrap();
    assert_eq!(third.collect().await.unwrap().to_bytes(), "one two three");
    let fourth = replay.attempt().unwrap();
    assert_eq!(fourth.collect().await.unwrap().to_bytes(), "one two three");
}

#[tokio::test]
async fn past_the_limit_it_streams_on_and_cannot_be_repeated() {
    let (sender, body) = fed();
    let replay = Replay::new(body, 5).unwrap();
    let first = replay.attempt().unwrap();
    for text in ["1234", "5", "6"] {
        send(&sender, text);
    }
    drop(sender);
    assert_eq!(first.collect().await.unwrap().to_bytes(), "123456");
    assert!(replay.attempt().is_none());
    let announced = Replay::new(Body::from("123456"), 5).unwrap_err();
    assert_eq!(announced.collect().await.unwrap().to_bytes(), "123456");
}

#[tokio::test]
async fn exactly_the_limit_can_be_repeated() {
    let replay = Replay::new(Body::from("12345"), 5).unwrap();
    for _ in 0..3 {
        let body = replay.attempt().unwrap();
        assert_eq!(body.size_hint().exact(), Some(5));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "12345");
    }
    let empty = Replay::new(Body::empty(), 0).unwrap();
    assert!(empty.attempt().unwrap().is_end_stream());
}

#[tokio::test]
async fn a_broken_body_and_trailers_are_not_repeated() {
    let (sender, body) = fed();
    let replay = Replay::new(body, 100).unwrap();
    sender.send(Err(BodyError::OverTime)).unwrap();
    assert!(replay.attempt().unwrap().collect().await.is_err());
    assert!(replay.attempt().is_none());
    let (sender, body) = fed();
    let replay = Replay::new(body, 100).unwrap();
    sender.send(Ok(Frame::trailers(http::HeaderMap::new()))).unwrap();
    drop(sender);
    assert!(replay.attempt().unwrap().collect().await.unwrap().trailers().is_some());
    assert!(replay.attempt().is_none());
}
