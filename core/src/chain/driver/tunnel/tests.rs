//! Websockets over pipes in memory, with ends that hold bytes back.

use std::future::{Future, poll_fn};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::frames::close_frame;
use super::pump::{End, Pump};
use super::registry::TunnelLimits;

const LIMIT: Duration = Duration::from_secs(10);

struct Scene {
    client: DuplexStream,
    upstream: DuplexStream,
    away: CancellationToken,
    pump: JoinHandle<(End, u64, u64)>,
}

fn scene(limits: TunnelLimits, pipe: usize) -> Scene {
    let (client, near) = duplex(pipe);
    let (far, upstream) = duplex(pipe);
    let away = CancellationToken::new();
    let token = away.clone();
    let pump = tokio::spawn(async move {
        let mut pump = Pump::new(near, far, limits);
        let mut away = std::pin::pin!(token.cancelled());
        let mut told = false;
        let end = poll_fn(|cx| {
            if !told && away.as_mut().poll(cx).is_ready() {
                told = true;
                pump.go_away();
            }
            pump.poll(cx)
        })
        .await;
        let (up, down) = pump.directions();
        (end, up.bytes, down.bytes)
    });
    Scene { client, upstream, away, pump }
}

impl Scene {
    async fn end(self) -> (End, u64, u64) {
        drop((self.client, self.upstream));
        in_time(self.pump).await.unwrap()
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("nothing happens")
}

async fn gets(side: &mut DuplexStream, expected: &[u8]) {
    let mut seen = vec![0; expected.len()];
    in_time(side.read_exact(&mut seen)).await.unwrap();
    assert!(seen == expected, "{} bytes differ", expected.len());
}

async fn rest(side: &mut DuplexStream) -> Vec<u8> {
    let mut seen = Vec::new();
    in_time(side.read_to_end(&mut seen)).await.unwrap();
    seen
}

/// A frame; the client's are masked.
fn frame(head: u8, masked: bool, payload: usize) -> Vec<u8> {
    let bit = if masked { 0x80 } else { 0 };
    let mut bytes = vec![head];
    match payload {
        0..126 => bytes.push(bit | u8::try_from(payload).unwrap()),
        126..65_536 => {
            bytes.push(bit | 126);
            bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
        }
        _ => {
            bytes.push(bit | 127);
            bytes.extend((payload as u64).to_be_bytes());
        }
    }
    if masked {
        bytes.extend([9, 8, 7, 6]);
    }
    bytes.extend((0..payload).map(|at| u8::try_from(at % 251).unwrap()));
    bytes
}

/// Unmasks a close frame of ours and returns its code.
fn masked_code(close: &[u8]) -> u16 {
    assert_eq!((close[0], close[1] & 0x80), (0x88, 0x80));
    u16::from_be_bytes([close[6] ^ close[2], close[7] ^ close[3]])
}

#[tokio::test]
async fn frames_of_every_size_pass_both_ways_untouched() {
    for pipe in [7, 4_096, 1 << 20] {
        let mut scene = scene(TunnelLimits::default(), pipe);
        let mut sent = Vec::new();
        for payload in [0, 1, 125, 126, 127, 16_384, 65_535, 65_536, 70_000] {
            // A text in two fragments with a ping between them.
            sent.extend(frame(0x01, true, payload));
            sent.extend(frame(0x89, true, 5));
            sent.extend(frame(0x80, true, payload));
        }
        let (mut client_read, mut client_write) = tokio::io::split(&mut scene.client);
        let (mut upstream_read, mut upstream_write) = tokio::io::split(&mut scene.upstream);
        let (mut up, mut down) = (vec![0; sent.len()], vec![0; sent.len()]);
        let all = async {
            let (a, b, c, d) = tokio::join!(
                client_write.write_all(&sent),
                upstream_write.write_all(&sent),
                upstream_read.read_exact(&mut up),
                client_read.read_exact(&mut down),
            );
            a.and(b).unwrap();
            c.and(d).unwrap();
        };
        in_time(all).await;
        assert!(up == sent && down == sent);
        // One side vanishes: the other is told.
        let length = sent.len() as u64;
        drop((up, down));
        let Scene { client, mut upstream, pump, .. } = scene;
        drop(client);
        assert!(rest(&mut upstream).await.is_empty());
        drop(upstream);
        assert_eq!(in_time(pump).await.unwrap(), (End::Closed, length, length));
    }
}

#[tokio::test]
async fn a_stop_is_told_to_both_sides_between_two_frames() {
    let mut scene = scene(TunnelLimits::default(), 1 << 16);
    let (up, down) = (frame(0x82, true, 300), frame(0x82, false, 300));
    scene.client.write_all(&up[..100]).await.unwrap();
    scene.upstream.write_all(&down[..100]).await.unwrap();
    gets(&mut scene.upstream, &up[..100]).await;
    gets(&mut scene.client, &down[..100]).await;
    scene.away.cancel();
    // In the middle of a frame nothing of ours may stand.
    scene.client.write_all(&up[100..]).await.unwrap();
    scene.upstream.write_all(&down[100..]).await.unwrap();
    gets(&mut scene.upstream, &up[100..]).await;
    gets(&mut scene.client, &down[100..]).await;
    gets(&mut scene.client, &close_frame(1001, "the gateway stops", None)).await;
    let mut close = [0; 8];
    in_time(scene.upstream.read_exact(&mut close)).await.unwrap();
    assert_eq!(masked_code(&close), 1001);
    // What is still sent is not passed on after a close frame; the answers end it.
    scene.client.write_all(&frame(0x81, true, 5)).await.unwrap();
    scene.client.write_all(&close_frame(1001, "", Some([1; 4]))).await.unwrap();
    scene.upstream.write_all(&frame(0x81, false, 5)).await.unwrap();
    scene.upstream.write_all(&close_frame(1001, "", None)).await.unwrap();
    assert!(rest(&mut scene.client).await.is_empty());
    assert!(rest(&mut scene.upstream).await.is_empty());
    assert_eq!(scene.end().await.0, End::Stopped);
}

#[tokio::test]
async fn a_close_that_passed_is_not_followed_by_ours() {
    let mut scene = scene(TunnelLimits::default(), 1 << 16);
    let close = close_frame(4400, "bye: ✓", None);
    scene.upstream.write_all(&close).await.unwrap();
    gets(&mut scene.client, &close).await;
    scene.away.cancel();
    let answer = close_frame(4400, "", Some([1; 4]));
    let mut ours = [0; 8];
    in_time(scene.upstream.read_exact(&mut ours)).await.unwrap();
    assert_eq!(masked_code(&ours), 1001);
    scene.client.write_all(&answer).await.unwrap();
    scene.upstream.shutdown().await.unwrap();
    assert!(rest(&mut scene.client).await.is_empty());
    assert_eq!(scene.end().await.0, End::Stopped);
}

#[tokio::test]
async fn a_frame_over_the_limit_closes_with_1009() {
    let limits = TunnelLimits { max_frame_bytes: 65_536, ..TunnelLimits::default() };
    let mut first = scene(limits.clone(), 1 << 20);
    let fine = frame(0x82, true, 65_536);
    first.client.write_all(&fine).await.unwrap();
    first.client.write_all(&frame(0x82, true, 65_537)).await.unwrap();
    gets(&mut first.upstream, &fine).await;
    let mut close = [0; 8];
    in_time(first.upstream.read_exact(&mut close)).await.unwrap();
    assert_eq!(masked_code(&close), 1001);
    let text = "a frame of 65537 bytes is over 65536";
    gets(&mut first.client, &close_frame(1009, text, None)).await;
    assert_eq!(first.end().await.0, End::ClientFrame);

    let mut second = scene(limits, 1 << 20);
    second.upstream.write_all(&frame(0x82, false, 65_537)).await.unwrap();
    gets(&mut second.client, &close_frame(1001, "", None)).await;
    let mut close = [0; 8];
    in_time(second.upstream.read_exact(&mut close)).await.unwrap();
    assert_eq!(masked_code(&close), 1009);
    assert_eq!(second.end().await.0, End::UpstreamFrame);
}

#[tokio::test]
async fn one_that_carries_nothing_is_closed() {
    let limits = TunnelLimits { idle: Some(Duration::from_millis(100)), ..TunnelLimits::default() };
    let mut scene = scene(limits, 1 << 10);
    let begun = std::time::Instant::now();
    gets(&mut scene.client, &close_frame(1001, "nothing was sent for too long", None)).await;
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(scene.end().await.0, End::Idle);
}

#[tokio::test]
async fn a_side_that_takes_nothing_ends_it_and_costs_one_chunk() {
    let limits =
        TunnelLimits { write_stall: Duration::from_millis(100), ..TunnelLimits::default() };
    let mut scene = scene(limits, 1 << 10);
    let mut taken = 0_usize;
    let mut sending = tokio::spawn(async move {
        let frames = frame(0x82, false, 60_000);
        while let Ok(sent) = scene.upstream.write(&frames[taken % frames.len()..]).await {
            taken += sent;
        }
        taken
    });
    let (end, ..) = in_time(scene.pump).await.unwrap();
    assert_eq!(end, End::ClientGone);
    let taken = in_time(&mut sending).await.unwrap();
    assert!(taken <= super::direction::CHUNK + (1 << 12), "{taken} bytes were taken in");
}
