//! Bringing the schema up to date.

use sqlx::migrate::Migrator;
use sqlx::{ConnectOptions, Connection};

use crate::statement::{execute, here};
use crate::store::{Db, Store};
use crate::{Error, Result, dialect};

static MIGRATOR: Migrator = sqlx::migrate!("./migrations");

impl Store {
    /// Brings the schema up to date, and gives a new database its epoch.
    ///
    /// May run on several admins at once: the later ones wait, and find nothing to do.
    ///
    /// # Errors
    /// [`Error::Schema`] when a PostgreSQL database is not in UTF-8; [`Error::Migrate`] when a step fails, when a step that the database has is unknown here (the
    /// database belongs to a newer version), or when a shipped step was changed.
    pub async fn migrate(&self) -> Result<()> {
        match self.db() {
            Db::Pg(_, options) => {
                // Not of the pool: waiting for another admin's migrations has no limit.
                // Its statements are files: a slow one would print a whole file into the log.
                let quiet = options.as_ref().clone().disable_statement_logging();
                let mut conn =
                    quiet.connect().await.map_err(|source| Error::sql(here!(), source))?;
                dialect::check_encoding(&mut conn).await?;
                let done = MIGRATOR.run(&mut conn).await;
                conn.close().await.map_err(|source| Error::sql(here!(), source))?;
                done?;
            }
            Db::Sqlite { write, .. } => MIGRATOR.run(write).await?,
        }
        let epoch = self.shared().entropy().token();
        let mut tx = self.write().await?;
        execute!(
            tx,
            "INSERT INTO install (name, value) VALUES ('epoch', $1) ON CONFLICT (name) DO NOTHING",
            epoch,
        )?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))
    }
}
