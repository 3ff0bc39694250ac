//! An event stream at a steady pace.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use tokio::time::{Interval, MissedTickBehavior};

use super::body::{BodyError, OriginBody};
use super::service::query_number;

/// Most events a client can ask for; a million, so that a stream ends some day.
const MAX_EVENTS: u64 = 1_000_000;

struct Events {
    next: u64,
    count: u64,
    interval: Interval,
}

/// Sends `count` events `data: 1`, `data: 2` …, the first at once.
pub(super) fn answer(request: &Request<Incoming>) -> Response<OriginBody> {
    let count = query_number(request, "count").unwrap_or(10).min(MAX_EVENTS);
    let pause = query_number(request, "interval_ms").unwrap_or(100).clamp(1, 600_000);
    let mut interval = tokio::time::interval(Duration::from_millis(pause));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut response = Response::new(OriginBody::boxed(Events { next: 1, count, interval }));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

impl Body for Events {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.next > self.count {
            return Poll::Ready(None);
        }
        std::task::ready!(self.interval.poll_tick(cx));
        let event = format!("id: {0}\ndata: {0}\n\n", self.next);
        self.next += 1;
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}
