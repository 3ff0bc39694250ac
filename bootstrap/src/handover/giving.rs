//! The predecessor's half: gives the sockets to one successor at a time, and stops when that accepts.

use std::future::{Future, pending};
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use longmen_core::telemetry::Throttle;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{info, warn};

use super::{
    ASK, BUSY, GIVEN_UP, KEEP_LIMIT, Offer, PATIENCE, PAUSE, Post, RELEASED, STOP, Sockets, heard,
    sockets,
};
use crate::worker::Doors;

/// Processes that are told at a time that another one gets ready.
const REFUSALS: usize = 8;

type Giving<'a> = Pin<Box<dyn Future<Output = io::Result<BufReader<UnixStream>>> + Send + 'a>>;

impl Post {
    /// Until a successor has taken over.
    pub(super) async fn hear_successors(&self, listener: UnixListener, sockets: &Sockets) {
        let failures = Throttle::default();
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        let mut giving: Option<Giving<'_>> = None;
        loop {
            let ended = tokio::select! {
                ended = end_of(&mut giving) => ended,
                accepted = listener.accept() => {
                    match accepted.and_then(|(stream, _)| sockets::same_user(&stream).map(|()| stream)) {
                        Ok(stream) if giving.is_none() => {
                            giving = Some(Box::pin(self.give(stream, sockets)));
                        }
                        Ok(stream) => refuse(stream, &refusals),
                        Err(error) => {
                            if let Some(left_out) = failures.pass() {
                                warn!("cannot hear a successor: {error}{left_out}");
                            }
                            // Of another user; all else may well last.
                            if error.kind() != io::ErrorKind::PermissionDenied {
                                tokio::time::sleep(PAUSE).await;
                            }
                        }
                    }
                    continue;
                }
            };
            match ended {
                Ok(stream) => {
                    drop(listener);
                    return self.release(stream);
                }
                Err(error) => {
                    giving = None;
                    if let Some(left_out) = failures.pass() {
                        warn!("a successor gave up: {error}{left_out}");
                    }
                }
            }
        }
    }

    /// Gives the sockets away and waits until the successor accepts.
    async fn give(
        &self,
        stream: UnixStream,
        sockets: &Sockets,
    ) -> io::Result<BufReader<UnixStream>> {
        let mut stream = BufReader::new(stream);
        timeout(PATIENCE, heard(&mut stream, ASK)).await??;
        info!("a successor gets ready");
        // It begins with the file, once it has the sockets.
        if let Some(keeper) = &self.keeper {
            let _ = timeout(KEEP_LIMIT, keeper.keep()).await;
        }
        // Until it ends or has said stop, the sockets are not ours alone. It goes on with them where
        // this gateway stops meanwhile, so this is not taken back then.
        let held_elsewhere = self.doors.others.fetch_add(1, Ordering::AcqRel) > 0;
        match self.wait_for(&mut stream, sockets, held_elsewhere).await {
            Ok(()) => Ok(stream),
            Err(error) => {
                tokio::spawn(given_back(stream, self.doors.clone()));
                Err(error)
            }
        }
    }

    async fn wait_for(
        &self,
        stream: &mut BufReader<UnixStream>,
        sockets: &Sockets,
        held_elsewhere: bool,
    ) -> io::Result<()> {
        let offer = Offer {
            public: sockets.public.len(),
            management: usize::from(sockets.management.is_some()),
            held_elsewhere,
        };
        let text = format!("{}\n", serde_json::to_string(&offer)?);
        // Workers that stop look whether the sockets are held: either they see it, or it is seen here
        // that they may not have.
        if self.lifecycle.soft().is_cancelled() {
            return Err(io::Error::other("this gateway stops"));
        }
        timeout(PATIENCE, stream.write_all(text.as_bytes())).await??;
        let all: Vec<&TcpListener> = sockets.public.iter().chain(&sockets.management).collect();
        timeout(PATIENCE, sockets::send(stream.get_ref(), &all)).await??;
        if let Ok(said) = timeout(self.patience, heard(stream, STOP)).await {
            return said;
        }
        // It may live, and must not serve beside this gateway for ever.
        let _ = timeout(PATIENCE, stream.write_all(format!("{GIVEN_UP}\n").as_bytes())).await;
        let text = format!("it did not get ready within {:?}", self.patience);
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Stops accepting, and says so.
    fn release(&self, mut stream: BufReader<UnixStream>) {
        info!("a successor has taken over");
        self.handed_over.store(true, Ordering::Relaxed);
        let accepting = self.doors.accepting.clone();
        // On its own: this task ends with the token.
        tokio::spawn(async move {
            accepting.close();
            if timeout(PATIENCE, accepting.wait()).await.is_ok() {
                let _ = stream.write_all(format!("{RELEASED}\n").as_bytes()).await;
            }
        });
        self.lifecycle.soft().cancel();
    }
}

async fn end_of(giving: &mut Option<Giving<'_>>) -> io::Result<BufReader<UnixStream>> {
    match giving {
        Some(giving) => giving.as_mut().await,
        None => pending().await,
    }
}

/// Waits until a successor that is not waited for any more has ended, and its sockets with it.
async fn given_back(mut stream: BufReader<UnixStream>, doors: Doors) {
    let mut words = [0; 64];
    while stream.read(&mut words).await.is_ok_and(|read| read > 0) {}
    doors.others.fetch_sub(1, Ordering::AcqRel);
}

/// Tells a process that another one gets ready.
fn refuse(stream: UnixStream, refusals: &Arc<Semaphore>) {
    let Ok(permit) = Arc::clone(refusals).try_acquire_owned() else { return };
    tokio::spawn(async move {
        let mut stream = BufReader::new(stream);
        let refusing = async {
            heard(&mut stream, ASK).await?;
            stream.write_all(format!("{BUSY}\n").as_bytes()).await
        };
        let _ = timeout(PATIENCE, refusing).await;
        drop(permit);
    });
}
