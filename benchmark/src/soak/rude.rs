//! An upstream that misbehaves, and what clients must see of it: an error, never a wrong answer.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Lane, wire};

/// What it can do wrong, by path.
const PATHS: [&str; 9] = [
    "/close",
    "/reset",
    "/stall",
    "/garbage",
    "/huge-head",
    "/half-head",
    "/cut",
    "/cut-chunk",
    "/extra",
];

/// Most that is read of a request head.
const HEAD_LIMIT: usize = 16 * 1024;

/// The upstream; ends with this value.
pub(super) struct Rude {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Rude {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) async fn start() -> anyhow::Result<Rude> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // Its clients see what it did; there is nobody else to tell.
                let _ = serve(stream).await;
            });
        }
    });
    Ok(Rude { address, task })
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 2_048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_LIMIT {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let text = String::from_utf8_lossy(&head);
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    let answer: Vec<u8> = match path.as_str() {
        "/reset" => {
            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            return Ok(());
        }
        "/stall" => {
            tokio::time::sleep(Duration::from_secs(3)).await;
            return Ok(());
        }
        "/garbage" => b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec(),
        "/huge-head" => {
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            for number in 0..4_000 {
                head.extend_from_slice(format!("x-{number}: {:050}\r\n", 0).as_bytes());
            }
            head.extend_from_slice(b"content-length: 0\r\n\r\n");
            head
        }
        "/half-head" => b"HTTP/1.1 200 OK\r\ncontent-le".to_vec(),
        "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nten bytes.".to_vec(),
        "/cut-chunk" => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\nten".to_vec(),
        // A right answer, and bytes behind it that belong to nobody.
        "/extra" => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nrightHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong".to_vec(),
        _ => return Ok(()),
    };
    stream.write_all(&answer).await?;
    stream.flush().await
}

pub(super) async fn run(mut lane: Lane) {
    lane.route = format!("{}-rude", lane.route).into();
    let mut turn = lane.number as usize;
    while !lane.stop.is_cancelled() {
        turn += 1;
        let path = PATHS[turn % PATHS.len()];
        let outcome = exchange(&lane, path).await.with_context(|| path);
        lane.tally.count("rude", outcome);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn exchange(lane: &Lane, path: &str) -> anyhow::Result<()> {
    let request = lane.request(Method::GET, path, wire::full(Bytes::new()))?;
    let response = lane.wire().await?.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await;
    match (path, body) {
        ("/extra", Ok(body)) if status == StatusCode::OK => {
            ensure!(body.to_bytes() == "right", "another body than the upstream's");
        }
        ("/cut" | "/cut-chunk", Ok(_)) if status == StatusCode::OK => {
            bail!("an answer that was cut came to the client as a whole one");
        }
        ("/cut" | "/cut-chunk", Err(_)) => {}
        (_, Ok(_)) => ensure!(
            matches!(status.as_u16(), 408 | 500 | 502..=504),
            "status {status} though the upstream did not answer"
        ),
        (_, Err(error)) => return Err(error).context("the gateway's own answer broke off"),
    }
    Ok(())
}
