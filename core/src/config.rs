//! Configuration of both binaries: sources, layering, typed reading, one table of known keys.
//!
//! A binary declares its keys as a [`Schema`] and reads them with [`load`] into its own structs.
//! What counts, from the strongest: `--key=value` arguments, `SPRING_APPLICATION_JSON`,
//! environment variables, the files of the active profiles, the documents of `application.yml`
//! from the last to the first, the table's defaults. Names are relaxed as Spring's are:
//! `shenyu.netty.http.workerCount`, `…worker-count` and `SHENYU_NETTY_HTTP_WORKERCOUNT` are one
//! key. `${NAME:default}` is resolved from variables by their exact names and from other keys.
//!
//! **Invariant:** all problems of a configuration are reported together, each with its place,
//! key, value and expectation, and never with a secret; the binary then ends with
//! [`EXIT_CONFIG`].

mod check;
mod cidr;
mod docs;
mod environment;
mod files;
mod key;
mod layers;
pub mod logging;
mod lookup;
mod placeholder;
mod problem;
mod profile;
mod reader;
mod schema;
mod source;
pub mod spring;
mod usage;
mod value;
pub mod yaml;
mod zone;

pub use cidr::{Cidr, NotACidr};
#[cfg(any(test, feature = "test-util"))]
pub use docs::check_page;
pub use docs::{chapter, with_chapter};
pub use environment::{Environment, FILE_LIMIT_BYTES, MemoryEnvironment, ProcessEnvironment};
pub use key::{KeyPath, Part, uniform};
pub use layers::Inputs;
pub use problem::{ConfigError, EXIT_CONFIG, Loaded, Notice, NoticeLevel, Problem};
pub use reader::{Reader, load};
pub use schema::{KeySpec, Schema, Section, Status};
pub use usage::Program;
pub use value::{
    BYTES, COUNT, FromSetting, Kind, MILLIS, SECONDS, Secret, SizeUnit, TEXTS, TimeUnit, Unfit,
};
pub use zone::{NotAZone, Zone};

#[cfg(test)]
mod tests;
