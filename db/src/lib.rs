//! The store of the admin: all SQL of Longmen, for SQLite and PostgreSQL.
//!
//! Open a [`Store`], bring it up to date by [`Store::migrate`] and [`Store::seed`], read through
//! [`Store::read`] and write through [`Store::begin`]. The functions in [`repository`] take the
//! transaction and return the domain's types or plain rows:
//!
//! ```no_run
//! # async fn example() -> longmen_db::Result<()> {
//! use longmen_db::{Actor, Location, Store, StoreOptions, repository::conditioned};
//! use longmen_core::model::Selector;
//!
//! let store = Store::open(&Location::parse("sqlite:longmen.db")?, StoreOptions::default()).await?;
//! store.migrate().await?;
//! let mut tx = store.read().await?;
//! let found = conditioned::find::<Selector>(&mut tx, "1234567890").await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Architecture invariant:** one text per statement serves both stores. What cannot be portable
//! is a named item of the module `dialect`, nowhere else. Only the admin links this crate.

mod change;
mod clock;
mod dialect;
mod error;
mod id;
mod install;
mod lease;
mod location;
mod migrate;
mod page;
mod pool;
mod reach;
pub mod repository;
mod seed;
mod state;
mod statement;
mod store;
mod tx;
mod wake;

pub use change::{
    Change, ChangeRow, ChangeSet, GLOBAL, Heads, Operation, Pruned, Retention, Since,
    current_version, epoch, heads, prune, renew_epoch, renew_epoch_from, since,
};
pub use clock::{Clock, Entropy, SystemClock, date_text};
pub use error::{Error, Result};
pub use lease::{Lease, LeaseState, require_lease};
pub use location::Location;
pub use page::{Keyword, Like, MAX_FILTER_IDS, MAX_PAGE_SIZE, Page, PageRequest};
pub use seed::SeedOptions;
pub use state::{Binding, FullState, full_state};
pub use store::{Store, StoreOptions};
pub use tx::{Actor, NewVersion, ReadTx, Source, Tx, UnitOfWork};
pub use wake::{Wake, WakeUp};
