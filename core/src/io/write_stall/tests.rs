use std::future::poll_fn;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::timeout;

use super::*;

/// Nothing takes longer, or it hangs.
const DEADLINE: Duration = Duration::from_secs(30);

const SOON: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_peer_that_takes_nothing_ends_the_stream() {
    let (near, _far) = duplex(16);
    let mut near = WriteStall::new(near, SOON);
    let written = timeout(DEADLINE, near.write_all(&[7; 64])).await.unwrap();
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn what_is_taken_is_not_disturbed() {
    let (near, mut far) = duplex(16);
    let mut near = WriteStall::new(near, NEVER);
    let taken = async {
        let mut taken = Vec::new();
        far.read_to_end(&mut taken).await.unwrap();
        taken
    };
    let sent = async {
        near.write_all(&[7; 1000]).await.unwrap();
        near.shutdown().await.unwrap();
    };
    let ((), taken) = timeout(DEADLINE, async { tokio::join!(sent, taken) }).await.unwrap();
    assert_eq!(taken, [7; 1000]);
}

#[tokio::test]
async fn an_idle_stream_is_not_watched() {
    let (near, mut far) = duplex(16);
    let mut near = WriteStall::new(near, SOON);
    tokio::time::sleep(SOON * 3).await;
    far.write_all(b"still there").await.unwrap();
    let mut heard = [0; 11];
    timeout(DEADLINE, near.read_exact(&mut heard)).await.unwrap().unwrap();
    assert_eq!(&heard, b"still there");
    assert!(near.timer.sleep.is_none(), "no timer before the first wait");
}

/// When the timer would end the stream, if it waits.
fn deadline(timer: &StallTimer) -> Option<Instant> {
    timer.waiting?;
    timer.sleep.as_ref().map(|sleep| sleep.deadline())
}

#[tokio::test]
async fn each_byte_that_is_taken_begins_the_time_anew() {
    poll_fn(|cx| {
        let mut timer = StallTimer::new(NEVER);
        assert!(timer.after_write(cx, Poll::Pending).is_pending());
        let first = deadline(&timer).unwrap();
        // Asked again without progress: the time goes on.
        assert!(timer.after_write(cx, Poll::Pending).is_pending());
        assert_eq!(deadline(&timer), Some(first));
        assert!(timer.after_write(cx, Poll::Ready(Ok(1))).is_ready());
        assert_eq!(deadline(&timer), None);
        while Instant::now() <= first - NEVER {
            std::hint::spin_loop();
        }
        assert!(timer.after_write(cx, Poll::Pending).is_pending());
        assert!(deadline(&timer).unwrap() > first);
        Poll::Ready(())
    })
    .await;
}

/// A plain socket is always done with a flush, whatever waits to be written.
#[tokio::test]
async fn a_flush_is_no_progress_of_a_write() {
    poll_fn(|cx| {
        let mut timer = StallTimer::new(NEVER);
        assert!(timer.after_write(cx, Poll::Pending).is_pending());
        let first = deadline(&timer);
        assert!(timer.after_flush(cx, Poll::Ready(Ok(()))).is_ready());
        assert_eq!(deadline(&timer), first);
        assert!(timer.after_write(cx, Poll::Ready(Ok(1))).is_ready());
        // One that has to wait itself is watched as well.
        assert!(timer.after_flush(cx, Poll::Pending).is_pending());
        assert!(deadline(&timer).is_some());
        assert!(timer.after_flush(cx, Poll::Ready(Ok(()))).is_ready());
        assert_eq!(deadline(&timer), None);
        Poll::Ready(())
    })
    .await;
}
