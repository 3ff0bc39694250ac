//! What the program is asked to do.
//!
//! ```text
//! longmen-admin [--key=value …]                serves until a signal
//! longmen-admin restore-mark [--key=value …]   marks a database as brought back from a backup
//! ```

use longmen_core::config::Program;

/// What the program says of itself.
pub(crate) const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    about: "the admin: REST API and sync for gateways; with `restore-mark` before the settings it \
            marks a database as brought back from a backup, and ends",
    version: env!("CARGO_PKG_VERSION"),
    first: &[
        ("server.port", "REST, sync and the API viewer, 9095"),
        ("spring.datasource.url", "postgres://user:password@host/database; also DATABASE_URL"),
        ("shenyu.database.path", "the SQLite file where no database is named, .data/longmen.db"),
        ("shenyu.admin.password", "the first password of user admin; made and printed otherwise"),
        ("logging.level.root", "info"),
    ],
};

/// One of the things it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Serve until a signal.
    Serve,
    /// Begin a new epoch.
    RestoreMark,
}

impl Command {
    /// Takes the command off the front of the arguments; without one the program serves.
    ///
    /// # Errors
    /// What was expected instead of a command that there is not.
    pub(crate) fn take(arguments: &mut Vec<String>) -> Result<Self, String> {
        if arguments.first().is_none_or(|first| first.starts_with('-')) {
            return Ok(Self::Serve);
        }
        match arguments.remove(0).as_str() {
            "restore-mark" => Ok(Self::RestoreMark),
            "import" => Err("longmen-admin: import comes in a later version".to_owned()),
            other => Err(format!(
                "longmen-admin: unknown command {other}, expected restore-mark, or none to serve"
            )),
        }
    }
}
