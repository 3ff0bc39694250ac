//! How long the sync waits for the store.
//!
//! A database that does not answer, behind a link that is cut without a word, would hold whoever
//! asks it for ever. Past its time a question is given up: the transaction is dropped, its
//! connection is not used again unless it answers, and the next attempt gets another.

use std::time::Duration;

/// A state is read by many statements, some of them large.
const STATE_FACTOR: u32 = 12;

/// Limits of what is asked of the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    query: Duration,
}

impl Patience {
    /// One question may take `query`; a whole namespace, or the pruning, twelve times as long.
    pub(super) const fn new(query: Duration) -> Self {
        Self { query }
    }

    /// Asks one question.
    ///
    /// # Errors
    /// Those of `question`, and one that says that it took too long.
    pub(super) async fn query<T, E: Into<anyhow::Error>>(
        self,
        what: &str,
        question: impl Future<Output = Result<T, E>>,
    ) -> anyhow::Result<T> {
        within(self.query, what, question).await
    }

    /// Reads or writes much.
    ///
    /// # Errors
    /// As [`Patience::query`].
    pub(super) async fn state<T, E: Into<anyhow::Error>>(
        self,
        what: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> anyhow::Result<T> {
        within(self.query.saturating_mul(STATE_FACTOR), what, work).await
    }
}

async fn within<T, E: Into<anyhow::Error>>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => anyhow::bail!("the database did not give {what} within {limit:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_never_answers_is_given_up_and_what_answers_passes() {
        let patience = Patience::new(Duration::from_millis(1));
        let never = std::future::pending::<anyhow::Result<()>>();
        let error = patience.query("anything", never).await.unwrap_err();
        assert_eq!(error.to_string(), "the database did not give anything within 1ms");
        let patience = Patience::new(Duration::from_secs(3600));
        assert_eq!(patience.state("it", async { anyhow::Ok(7) }).await.unwrap(), 7);
    }
}
