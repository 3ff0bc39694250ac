//! Waiting for a PostgreSQL server that does not answer yet, and saying so.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::statement::here;
use crate::{Error, Result};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// How long the last attempt may take, which is made when the patience is over.
const LAST_ATTEMPT: Duration = Duration::from_secs(1);

/// How long the first attempt goes on before it is told that there is no answer.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// Between one word and the next.
const WORDS: Duration = Duration::from_secs(10);

/// Between two attempts: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Waits until the server of `options` lets a connection in, for `patience` at most. That it waits
/// is a warning after the first attempt that fails, or that has no answer within a second, and from
/// then on every ten seconds; `place` names the server in it, without a password.
///
/// # Errors
/// [`Error::Unreachable`] when the patience is over. What does not heal by waiting (a wrong
/// password, no such database) at once, as the driver sees it.
pub(crate) async fn wait_for(
    options: &PgConnectOptions,
    place: &str,
    patience: Duration,
) -> Result<()> {
    let begun = Instant::now();
    let deadline = begun + patience;
    let mut next_word = begun + FIRST_WORD;
    let mut told = false;
    let mut pause = PAUSES.0;
    loop {
        let mut attempt = std::pin::pin!(attempt(options, deadline));
        let cause = loop {
            tokio::select! {
                biased;
                outcome = attempt.as_mut() => match outcome? {
                    None => return Ok(()),
                    Some(cause) => break cause,
                },
                () = sleep_until(next_word), if next_word < deadline => {
                    waits(place, "no answer so far", deadline);
                    (told, next_word) = (true, Instant::now() + WORDS);
                }
            }
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(Error::Unreachable { patience, cause });
        }
        if !told || now >= next_word {
            waits(place, &cause, deadline);
            (told, next_word) = (true, now + WORDS);
        }
        sleep(pause.min(deadline - now)).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// One attempt. Out: why it failed, if waiting can help.
async fn attempt(options: &PgConnectOptions, deadline: Instant) -> Result<Option<String>> {
    let limit = ATTEMPT.min(deadline.saturating_duration_since(Instant::now())).max(LAST_ATTEMPT);
    // Statements are not logged: there are none.
    let options = options.clone().disable_statement_logging();
    match timeout(limit, PgConnection::connect_with(&options)).await {
        Ok(Ok(connection)) => {
            // The server is there; whether it also takes a farewell is of no account.
            drop(timeout(limit, connection.close()).await);
            Ok(None)
        }
        Ok(Err(sqlx::Error::Io(error))) => Ok(Some(in_words(&error))),
        Ok(Err(error @ sqlx::Error::Tls(_))) => Err(Error::sql(here!(), error)),
        Ok(Err(error)) => match Error::sql(here!(), error) {
            // It is starting, stopping, or full.
            Error::Unavailable { cause } => Ok(Some(cause.to_string())),
            other => Err(other),
        },
        Err(_) => Ok(Some("no answer".to_owned())),
    }
}

/// The system's text, without the number of the error.
fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

fn waits(place: &str, why: &str, deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    tracing::warn!("waiting for the {place}: {why}; giving up in {} s", left.as_secs_f32().ceil());
}
