//! A response body that gives its connection back when it has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;

use super::conn::Http1;
use super::pool::Pool;
use crate::body::{Body, BodyError};

pub(super) struct PooledBody {
    incoming: Incoming,
    /// Dropped with the body before its end, the connection is closed.
    lease: Option<(Http1, Arc<Pool>)>,
}

impl PooledBody {
    /// Ties a connection to the body of its answer. An empty body gives it back at once.
    pub(super) fn wrap(incoming: Incoming, connection: Http1, pool: &Arc<Pool>) -> Body {
        if incoming.is_end_stream() {
            pool.push(connection);
            return Body::empty();
        }
        Body::boxed(Self { incoming, lease: Some((connection, Arc::clone(pool))) })
    }

    fn give_back(&mut self) {
        if let Some((connection, pool)) = self.lease.take() {
            pool.push(connection);
        }
    }
}

impl HttpBody for PooledBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.incoming).poll_frame(cx));
        match &frame {
            None => this.give_back(),
            Some(Err(_)) => this.lease = None,
            // With a known length the body is not polled again after its last byte.
            Some(Ok(_)) if this.incoming.is_end_stream() => this.give_back(),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Transport)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
