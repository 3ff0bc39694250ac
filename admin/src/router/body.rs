//! Reading the bodies of requests, within limits.

use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::watch;

/// What the bodies of all calls under way may hold together. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    /// How many bytes are held.
    held: Arc<watch::Sender<usize>>,
    max_bytes: usize,
}

/// A part of a [`BodyBudget`], given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    of: Arc<watch::Sender<usize>>,
    bytes: usize,
}

/// A body, and its share of the budget, which is given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct HeldBody {
    pub(super) bytes: Bytes,
    pub(super) share: Option<Share>,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyFault {
    /// It is larger than this call's may be.
    #[error("request body is larger than {0} bytes")]
    TooLarge(usize),
    /// Together with those of other calls it is more than is held at once.
    #[error(
        "request bodies under way would hold more than {0} bytes together \
         (shenyu.limits.bodiesMaxBytes), try again later"
    )]
    Crowded(usize),
    /// It broke off.
    #[error("request body broke off: {0}")]
    Broken(axum::Error),
}

impl BodyBudget {
    /// A budget of `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { held: Arc::new(watch::Sender::new(0)), max_bytes }
    }

    /// Waits until `wanted` is true of the number of bytes that are held.
    pub async fn until_held(&self, mut wanted: impl FnMut(usize) -> bool) {
        // The sender is this budget's own.
        drop(self.held.subscribe().wait_for(|held| wanted(*held)).await);
    }

    /// Reads a whole body of at most `limit` bytes. What has arrived is what counts against the
    /// budget, not what was announced: nobody takes a share by an announcement.
    ///
    /// # Errors
    /// [`BodyFault`]; the rest of the body is then left unread.
    pub(super) async fn read(&self, body: Body, limit: usize) -> Result<HeldBody, BodyFault> {
        if body.size_hint().lower() > limit as u64 {
            return Err(BodyFault::TooLarge(limit));
        }
        let mut body = pin!(body);
        let mut bytes = BytesMut::new();
        let mut share = Share { of: Arc::clone(&self.held), bytes: 0 };
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(BodyFault::Broken)?.into_data() else { continue };
            if data.len() > limit - bytes.len() {
                return Err(BodyFault::TooLarge(limit));
            }
            if !share.grow(data.len(), self.max_bytes) {
                return Err(BodyFault::Crowded(self.max_bytes));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody { bytes: bytes.freeze(), share: Some(share) })
    }
}

impl Share {
    /// Takes more, if all together then hold no more than `max_bytes`.
    fn grow(&mut self, more: usize, max_bytes: usize) -> bool {
        let taken = self.of.send_if_modified(|held| {
            let fits = more <= max_bytes - *held;
            if fits {
                *held += more;
            }
            fits
        });
        if taken {
            self.bytes += more;
        }
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.send_modify(|held| *held -= self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body that arrives in pieces of ten bytes, without a length.
    fn pieces(count: usize) -> Body {
        let pieces = (0..count).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"0123456789")));
        Body::from_stream(futures_util::stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_up_to_its_limit() {
        let budget = BodyBudget::new(1000);
        assert_eq!(budget.read(pieces(3), 30).await.unwrap().bytes.len(), 30);
        for body in [pieces(4), Body::from(vec![0; 31])] {
            let fault = budget.read(body, 30).await.unwrap_err();
            assert!(matches!(fault, BodyFault::TooLarge(30)), "{fault}");
        }
        assert_eq!(*budget.held.borrow(), 0, "nothing is held");
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded_until_they_are_dropped() {
        let budget = BodyBudget::new(50);
        let first = budget.read(pieces(3), 100).await.unwrap();
        let fault = budget.read(pieces(3), 100).await.unwrap_err();
        assert!(matches!(fault, BodyFault::Crowded(50)), "{fault}");
        let second = budget.read(pieces(2), 100).await.unwrap();
        drop((first, second));
        assert_eq!(budget.read(pieces(5), 100).await.unwrap().bytes.len(), 50);
    }
}
