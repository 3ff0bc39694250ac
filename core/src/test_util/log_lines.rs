//! What was logged, for tests that look at it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::{Level, Subscriber};
use tracing_subscriber::registry::LookupSpan;

/// A place that log lines go to. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    /// A subscriber that writes everything down to `debug` here; for `with_default` and the like.
    pub fn subscriber(&self) -> impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync + use<> {
        let lines = self.clone();
        tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || lines.clone())
            .finish()
    }

    /// Everything so far.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// How many lines hold this text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.text().lines().filter(|line| line.contains(text)).count()
    }
}

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
