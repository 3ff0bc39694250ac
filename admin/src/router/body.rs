//! Reading the bodies of requests, within limits.

use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What the bodies of all calls under way may hold together. Clones share it.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    /// One place per byte.
    places: Arc<Semaphore>,
    max_bytes: usize,
}

/// A body, and its share of the budget, which is given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct HeldBody {
    pub(super) bytes: Bytes,
    pub(super) share: Option<OwnedSemaphorePermit>,
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
        let max_bytes = max_bytes.min(Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(max_bytes)), max_bytes }
    }

    /// Waits until no call holds any of it. Calls that come while it waits may be refused.
    pub async fn unused(&self) {
        let all = u32::try_from(self.max_bytes).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        drop(self.places.acquire_many(all).await);
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
        let mut share: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(BodyFault::Broken)?.into_data() else { continue };
            if data.len() > limit - bytes.len() {
                return Err(BodyFault::TooLarge(limit));
            }
            let more = self.take(data.len()).ok_or(BodyFault::Crowded(self.max_bytes))?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(HeldBody { bytes: bytes.freeze(), share })
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?;
        Arc::clone(&self.places).try_acquire_many_owned(bytes).ok()
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
        assert_eq!(budget.places.available_permits(), 1000, "nothing is held");
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
