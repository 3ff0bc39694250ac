//! Facts that all admins of a database share.

use crate::repository::TextRow;
use crate::statement::{execute, fetch_optional, here};
use crate::{Error, Result, Store};

impl Store {
    /// A fact that all admins of this database share, by its name: `offered` where none is stored yet.
    /// Out: what is stored then. Of several admins that offer one at a time, one is taken.
    ///
    /// # Errors
    /// The database's.
    pub async fn shared_fact(
        &self,
        name: &'static str,
        offered: Option<&str>,
    ) -> Result<Option<String>> {
        let mut tx = self.write().await?;
        if let Some(value) = offered {
            execute!(
                tx,
                "INSERT INTO install (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
                name,
                value,
            )?;
        }
        let stored = fetch_optional!(
            tx,
            TextRow,
            "SELECT value AS text FROM install WHERE name = $1",
            name,
        )?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
        Ok(stored.map(|row| row.text))
    }
}
