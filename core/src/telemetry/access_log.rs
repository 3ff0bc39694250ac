//! The access log: one line per request, once it is over.
//!
//! Each worker formats its lines and puts them into a bounded queue of its own; one thread writes what
//! all queues hold. A worker never waits: a line that finds its queue full is dropped and counted. The
//! thread looks at the queues every few milliseconds instead of being woken by each line, which would
//! cost the worker a system call.

mod line;
mod mask;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::error;

use super::Throttle;

pub use line::{Line, LineFormat};

/// How long the writer rests when there is nothing to write.
const REST: Duration = Duration::from_millis(20);

/// Lines are handed to the system in pieces of about this size, in bytes.
const PIECE: usize = 64 * 1024;

/// How lines are written.
#[derive(Debug, Clone)]
pub struct AccessLogOptions {
    /// Their form.
    pub format: LineFormat,
    /// The file they are added to; `None`: standard output.
    pub path: Option<PathBuf>,
    /// Lines that may wait per worker.
    pub queue: usize,
}

/// The access log of a gateway. Dropping it lets the writer finish what is queued and end.
#[derive(Debug)]
pub struct AccessLog {
    shared: Arc<Shared>,
    options: AccessLogOptions,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queues: Mutex<Vec<Queue>>,
    closing: AtomicBool,
    written: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Queue {
    lines: Receiver<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// A worker's end of the log.
#[derive(Debug)]
pub struct Lines {
    format: LineFormat,
    queue: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// What the log counted.
#[derive(Debug, Clone)]
pub struct AccessLogFigures(Arc<Shared>);

impl AccessLog {
    /// Opens the log and starts its writer.
    ///
    /// # Errors
    /// A file that cannot be opened, named in the error; no thread to be had.
    pub fn start(options: AccessLogOptions) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = match &options.path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(open(path)?),
        };
        let shared = Arc::new(Shared::default());
        let writer = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("access-log".into())
                .spawn(move || shared.write_all(sink))?
        };
        Ok(Self { shared, options, writer: Some(writer) })
    }

    /// A worker's end.
    #[must_use]
    pub fn worker(&self) -> Lines {
        let (queue, lines) = sync_channel(self.options.queue);
        let dropped = Arc::new(AtomicU64::new(0));
        self.shared.queues().push(Queue { lines, dropped: Arc::clone(&dropped) });
        Lines { format: self.options.format, queue, dropped }
    }

    /// Its counters.
    #[must_use]
    pub fn figures(&self) -> AccessLogFigures {
        AccessLogFigures(Arc::clone(&self.shared))
    }

    /// Writes what is queued and ends. To be called when the workers have ended; blocks.
    pub fn close(mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            let _ = writer.join();
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
    }
}

impl AccessLogFigures {
    /// Lines written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// Lines dropped: because a queue was full, or because they could not be written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let full: u64 =
            self.0.queues().iter().map(|queue| queue.dropped.load(Ordering::Relaxed)).sum();
        full + self.0.lost.load(Ordering::Relaxed)
    }
}

impl Lines {
    /// Queues the line of a request that is over.
    pub fn write(&self, line: &Line<'_>) {
        if self.queue.try_send(line.format(self.format)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    fn queues(&self) -> std::sync::MutexGuard<'_, Vec<Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer: until the log closes and the queues are empty.
    fn write_all(&self, mut sink: Box<dyn Write + Send>) {
        let complaints = Throttle::default();
        let (mut piece, mut lines) = (Vec::with_capacity(2 * PIECE), 0_u64);
        loop {
            let closing = self.closing.load(Ordering::Acquire);
            self.collect(&mut piece, &mut lines);
            if lines == 0 {
                if closing {
                    return;
                }
                std::thread::park_timeout(REST);
                continue;
            }
            match sink.write_all(&piece).and_then(|()| sink.flush()) {
                Ok(()) => {
                    self.written.fetch_add(lines, Ordering::Relaxed);
                }
                Err(error) => {
                    self.lost.fetch_add(lines, Ordering::Relaxed);
                    if let Some(left_out) = complaints.pass() {
                        error!("access log cannot be written: {error}; lines are lost{left_out}");
                    }
                }
            }
            piece.clear();
            lines = 0;
        }
    }

    /// Takes waiting lines, a piece at most, from all queues in turn.
    fn collect(&self, piece: &mut Vec<u8>, lines: &mut u64) {
        let queues = self.queues();
        let mut empty = false;
        while !empty && piece.len() < PIECE {
            empty = true;
            for queue in queues.iter() {
                if let Ok(line) = queue.lines.try_recv() {
                    piece.extend_from_slice(&line);
                    *lines += 1;
                    empty = false;
                }
            }
        }
    }
}

fn open(path: &std::path::Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot open the access log {}: {error}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests;
