//! What reqwest connects with: our names, and a count of its connections.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tower::{Layer, Service};

use super::super::connect::ConnectError;
use super::super::dns::Dns;
use super::super::pool::Pool;
use crate::upstream::Endpoint;

tokio::task_local! {
    /// Set when a connection is opened for the request of this task. While it is not, the request
    /// went out on a kept one.
    pub(super) static FRESH: Arc<AtomicBool>;
}

/// Names by the resolver that both strategies share.
pub(super) struct Names(pub(super) Dns);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let dns = self.0.clone();
        Box::pin(async move {
            match dns.resolve(name.as_str()).await {
                Ok(found) => {
                    // The port is that of the URL.
                    Ok(Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
                }
                Err(source) => Err(ConnectError::Dns { name: name.as_str().into(), source }.into()),
            }
        })
    }
}

/// Puts a count of the connections of one host around reqwest's connector.
#[derive(Debug, Clone)]
pub(super) struct Counting {
    pool: Arc<Pool>,
    key: u64,
}

impl Counting {
    pub(super) fn new(pool: &Arc<Pool>, endpoint: &Endpoint) -> Self {
        Self { pool: Arc::clone(pool), key: endpoint.pool_key }
    }
}

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, count: self.clone() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Counted<S> {
    inner: S,
    count: Counting,
}

impl<S, R> Service<R> for Counted<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let _ = FRESH.try_with(|fresh| fresh.store(true, Ordering::Relaxed));
        let (connecting, count) = (self.inner.call(target), self.count.clone());
        Box::pin(async move {
            let connected = connecting.await?;
            count.pool.opened(count.key);
            Ok(connected)
        })
    }
}
