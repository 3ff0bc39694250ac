//! Start, stop, and everything that runs in between.
//!
//! A process has two tokens: *soft* asks everything to come to its end, *hard* ends the waiting.
//! The first signal sets the soft one; a second signal, or the end of the grace period, the hard
//! one. Every task is spawned here with a name; one that panics makes the exit code non-zero.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error, info, info_span, warn};

/// The life of one gateway or admin. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    soft: CancellationToken,
    hard: CancellationToken,
    tasks: TaskTracker,
    failed: Arc<AtomicBool>,
}

/// How a life came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "says whether something was cut off or failed"]
pub struct Ended {
    /// Whether everything ended by itself; otherwise the grace ran out, or a second signal came,
    /// and what was left was cut off.
    pub in_time: bool,
    /// Whether a task had panicked.
    pub failed: bool,
}

impl Ended {
    /// Whether everything ended by itself and nothing had failed.
    #[must_use]
    pub const fn well(self) -> bool {
        self.in_time && !self.failed
    }
}

impl Lifecycle {
    /// A life that has begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Set when everything should come to its end.
    #[must_use]
    pub fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    /// Set when waiting is over.
    #[must_use]
    pub fn hard(&self) -> &CancellationToken {
        &self.hard
    }

    /// Runs a named task on `runtime` until it ends or waiting is over.
    ///
    /// A task that ends on its own is fine; one that panics is logged, marks the life as failed and
    /// asks everything else to stop, since what it did is not done any more.
    pub fn spawn(
        &self,
        runtime: &Handle,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let (hard, soft, failed) = (self.hard.clone(), self.soft.clone(), Arc::clone(&self.failed));
        let watched = runtime.spawn(task.instrument(info_span!("task", name)));
        let abort = watched.abort_handle();
        self.tasks.spawn_on(
            async move {
                let ended = tokio::select! {
                    ended = watched => ended,
                    () = hard.cancelled() => {
                        abort.abort();
                        return;
                    }
                };
                if ended.is_err_and(|error| error.is_panic()) {
                    error!(name, "a task panicked: stopping");
                    failed.store(true, Ordering::Relaxed);
                    soft.cancel();
                }
            },
            runtime,
        );
    }

    /// Counts something that must end before the process does, without running it here. What is
    /// counted so watches [`Lifecycle::hard`] itself.
    #[must_use]
    pub fn tracker(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Marks the life as failed and asks everything to stop.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.soft.cancel();
    }

    /// Asks everything to stop and waits at most `grace`. Says whether all came to its end.
    pub async fn ended(&self, grace: Duration) -> bool {
        self.soft.cancel();
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => true,
            () = self.hard.cancelled() => false,
            () = tokio::time::sleep(grace) => false,
        }
    }

    /// Ends what is left at once. Says how it all went.
    pub async fn cut_off(&self) -> Ended {
        let in_time = self.tasks.is_empty();
        if !in_time {
            self.hard.cancel();
            let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        }
        Ended { in_time, failed: self.failed.load(Ordering::Relaxed) }
    }

    /// Asks everything to stop and waits at most `grace`; then ends what is left.
    pub async fn stop(&self, grace: Duration) -> Ended {
        if !self.ended(grace).await {
            warn!(left = self.tasks.len(), ?grace, "not everything came to its end in time");
        }
        self.cut_off().await
    }

    /// Waits for the first SIGINT or SIGTERM, or until something else asks to stop. From then on a
    /// second signal ends all waiting.
    ///
    /// # Errors
    /// Signal handlers cannot be installed.
    pub async fn until_signal(&self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = interrupt.recv() => info!("SIGINT: stopping"),
            _ = terminate.recv() => info!("SIGTERM: stopping"),
            () = self.soft.cancelled() => {}
        }
        let hard = self.hard.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            warn!("second signal: stopping at once");
            hard.cancel();
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ended, Lifecycle};

    #[tokio::test]
    async fn stop_waits_for_tasks_and_no_longer_than_the_grace() {
        let life = Lifecycle::new();
        let runtime = tokio::runtime::Handle::current();
        let soft = life.soft().clone();
        life.spawn(&runtime, "obedient", async move { soft.cancelled().await });
        assert!(life.stop(Duration::from_secs(5)).await.well());

        let life = Lifecycle::new();
        life.spawn(&runtime, "stubborn", std::future::pending());
        let ended = life.stop(Duration::from_millis(50)).await;
        assert_eq!(ended, Ended { in_time: false, failed: false });
        assert!(!ended.well());
        assert!(life.hard().is_cancelled());
    }

    #[tokio::test]
    async fn a_panic_stops_the_rest_and_is_remembered() {
        let life = Lifecycle::new();
        let runtime = tokio::runtime::Handle::current();
        life.spawn(&runtime, "doomed", async { panic!("as planned") });
        tokio::time::timeout(Duration::from_secs(5), life.soft().cancelled()).await.unwrap();
        let ended = life.stop(Duration::from_secs(1)).await;
        assert_eq!(ended, Ended { in_time: true, failed: true });
    }
}
