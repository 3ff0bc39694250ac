//! What libraries log at `warn` and above, at a bounded rate.
//!
//! Some of it a peer provokes at will: h2 writes a line for each connection on which a client opens
//! and resets streams too fast, hickory one for each answer that was not asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::callsite::{Callsite, Identifier};
use tracing::field::{Value, display};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::throttle::{LeftOut, Throttle};
use crate::upstream::now_ms;

/// Names of targets that are not touched: our own modules, which bound their lines themselves, and
/// the database library, whose lines tell which statement was slow.
const UNTOUCHED: [&str; 2] = ["longmen", "sqlx"];

/// A throttle for each place in a library that logs a warning or an error. There are as many as there
/// are such places in the program; lines below are not looked at.
#[derive(Debug)]
pub(super) struct LibraryLines {
    places: Mutex<HashMap<Identifier, Arc<Throttle>>>,
    clock: fn() -> u64,
}

impl Default for LibraryLines {
    fn default() -> Self {
        Self { places: Mutex::default(), clock: now_ms }
    }
}

impl<S: Subscriber> Layer<S> for LibraryLines {
    fn event_enabled(&self, event: &Event<'_>, cx: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        // Levels are ordered by how much they let through.
        if *metadata.level() > Level::WARN
            || UNTOUCHED.iter().any(|name| metadata.target().starts_with(name))
        {
            return true;
        }
        let throttle = {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(metadata.callsite()).or_default())
        };
        match throttle.pass_at((self.clock)()) {
            None => false,
            Some(LeftOut(0)) => true,
            Some(LeftOut(count)) => {
                // Nothing can be added to a line of somebody else's.
                tell_left_out(count, metadata.target(), &cx);
                true
            }
        }
    }
}

/// Writes a line of ours. Not by a macro: a line within a line may get lost.
fn tell_left_out<S: Subscriber>(count: u64, library: &str, cx: &Context<'_, S>) {
    let text = display(format!("{count} lines like the next one were left out"));
    let fields = METADATA.fields();
    if let (Some(message), Some(source)) = (fields.field("message"), fields.field("library")) {
        let values =
            [(&message, Some(&text as &dyn Value)), (&source, Some(&library as &dyn Value))];
        cx.event(&Event::new(&METADATA, &fields.value_set(&values)));
    }
}

/// The place of that line in the source, as the log library wants it.
struct LeftOutLine;

static LEFT_OUT_LINE: LeftOutLine = LeftOutLine;

static METADATA: Metadata<'static> = tracing::metadata! {
    name: "left out",
    target: module_path!(),
    level: Level::WARN,
    fields: &["message", "library"],
    callsite: &LEFT_OUT_LINE,
    kind: tracing::metadata::Kind::EVENT,
};

impl Callsite for LeftOutLine {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        &METADATA
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tracing::subscriber::with_default;
    use tracing::{info, warn};
    use tracing_subscriber::layer::SubscriberExt;

    use super::LibraryLines;
    use crate::test_util::LogLines;

    static CLOCK: AtomicU64 = AtomicU64::new(1);

    fn flood() {
        for connection in 0..1000 {
            warn!(target: "h2::proto::streams::recv", connection, "too many resets");
        }
    }

    #[test]
    fn a_flood_from_a_library_is_one_line_in_a_pause() {
        let lines = LogLines::default();
        let limited =
            LibraryLines { clock: || CLOCK.load(Ordering::Relaxed), ..LibraryLines::default() };
        with_default(lines.subscriber().with(limited), || {
            flood();
            assert_eq!(lines.count("too many resets"), 1);
            // Another place, and lines that nobody limits, are not affected.
            warn!(target: "h2::proto::ping_pong", "an ack that was not asked for");
            for n in 0..5 {
                warn!(target: "longmen_bootstrap::worker", n, "ours");
                info!(target: "h2", n, "below");
            }
            assert_eq!(lines.count("an ack"), 1);
            assert_eq!((lines.count("ours"), lines.count("below")), (5, 5));
            CLOCK.fetch_add(10_000, Ordering::Relaxed);
            flood();
        });
        assert_eq!(lines.count("too many resets"), 2);
        assert_eq!(lines.count("999 lines like the next one were left out"), 1);
    }
}
