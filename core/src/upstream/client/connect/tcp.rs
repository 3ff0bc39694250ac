//! One TCP connection out of several addresses.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// How long one address has for itself before the next is tried beside it.
///
/// Source: RFC 8305, section 5, the recommended delay.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first address that answers. The next one is tried when an attempt fails, and
/// also when it takes longer than its head start, while the earlier ones go on. The error is that
/// of the first address.
pub(super) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let stream = match addresses {
        [] => return Err(io::Error::new(io::ErrorKind::NotFound, "no addresses")),
        [only] => TcpStream::connect(only).await.map_err(|error| at(*only, &error))?,
        several => race(several).await?,
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn race(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut left = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut first_error = None;
    loop {
        if let Some(address) = left.next() {
            attempts.push(async move {
                TcpStream::connect(address).await.map_err(|error| at(address, &error))
            });
        }
        let next = Instant::now() + HEAD_START;
        // An attempt that fails brings the next one on at once, and its time begins anew.
        loop {
            tokio::select! {
                done = attempts.next() => match done {
                    Some(Ok(stream)) => return Ok(stream),
                    Some(Err(error)) => {
                        first_error.get_or_insert(error);
                        if left.len() > 0 || attempts.is_empty() {
                            break;
                        }
                    }
                    None => break,
                },
                () = sleep_until(next), if left.len() > 0 => break,
            }
        }
        if attempts.is_empty() && left.len() == 0 {
            return Err(first_error.unwrap_or_else(|| io::ErrorKind::NotConnected.into()));
        }
    }
}

fn at(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;

    use super::dial;

    async fn closed() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    }

    #[tokio::test]
    async fn refused_addresses_are_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        for order in
            [[closed().await, closed().await, good], [good, closed().await, closed().await]]
        {
            let stream = dial(&order).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), good);
            assert!(stream.nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn the_first_address_is_the_one_that_is_complained_about() {
        let (first, second) = (closed().await, closed().await);
        let error = dial(&[first, second]).await.unwrap_err();
        assert!(error.to_string().starts_with(&first.to_string()), "{error}");
        assert!(dial(&[]).await.is_err());
    }
}
