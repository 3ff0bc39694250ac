//! Reading and writing, one module per entity.
//!
//! Functions that read take a [`Tx`](crate::Tx), which a [`ReadTx`](crate::ReadTx) and a
//! [`UnitOfWork`](crate::UnitOfWork) both are; functions that write take a unit of work. Not found
//! is `None` or a count of 0. Nothing here records changes by itself unless it says so: whoever
//! writes calls [`UnitOfWork::record`](crate::UnitOfWork::record).
//!
//! Two writers of one object: whoever reads an object to change it does so by `find_for_update`,
//! which holds its row until the end of the transaction. Writers of a rule hold the row of its
//! selector, writers of upstreams that of their discovery handler; so the order of versions is the
//! order in which the rows were written.

mod condition;

pub mod api_doc;
pub mod binding;
pub mod conditioned;
pub mod data_permission;
pub mod dict;
pub mod discovery;
pub mod gateway;
pub mod instance;
pub mod meta_data;
pub mod namespace;
pub mod namespace_plugin;
pub mod operation_log;
pub mod permission;
pub mod plugin;
pub mod plugin_handle;
pub mod proxy_selector;
pub mod role;
pub mod rule;
pub mod selector;
pub mod upstream;
pub mod user;

pub(crate) use condition::of_namespace as condition_map;
pub use condition::{ConditionRow, NewCondition};

/// A single number from a statement.
#[derive(sqlx::FromRow)]
pub(crate) struct CountRow {
    pub(crate) n: i64,
}

/// A single text from a statement.
#[derive(sqlx::FromRow)]
pub(crate) struct TextRow {
    pub(crate) text: String,
}
