//! Where a store is.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use crate::{Error, Result};

/// Where a store is: a file of its own, or a PostgreSQL server.
#[derive(Clone)]
pub enum Location {
    /// The SQLite file.
    Sqlite(PathBuf),
    /// How to connect to PostgreSQL.
    Postgres(Box<PgConnectOptions>),
}

impl Location {
    /// Reads an address.
    ///
    /// In: `postgres://…` or `postgresql://…`, the same behind `jdbc:` (parameters `user`,
    /// `password`, `currentSchema`, `ssl` and `sslmode` are understood, others of the Java driver
    /// are left out), `sqlite:PATH`, `sqlite://PATH`, or a plain path.
    ///
    /// # Errors
    /// [`Error::Address`] for another database, or an address that cannot be read.
    pub fn parse(address: &str) -> Result<Self> {
        let address = address.trim();
        if let Some(rest) = address.strip_prefix("jdbc:") {
            return jdbc(address, rest);
        }
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return postgres(address, address);
        }
        for prefix in ["sqlite://", "sqlite:"] {
            if let Some(path) = address.strip_prefix(prefix) {
                return sqlite(address, path);
            }
        }
        if let Some((scheme, _)) = address.split_once("://") {
            return Err(refused(
                address,
                format!("unknown kind {scheme}, expected postgres://…, sqlite:PATH or a path"),
            ));
        }
        sqlite(address, address)
    }

    /// Sets the user and the password of a PostgreSQL address; what is empty stays as it is.
    #[must_use]
    pub fn with_credentials(self, user: &str, password: &str) -> Self {
        match self {
            Self::Postgres(mut options) => {
                if !user.is_empty() {
                    *options = options.username(user);
                }
                if !password.is_empty() {
                    *options = options.password(password);
                }
                Self::Postgres(options)
            }
            sqlite @ Self::Sqlite(_) => sqlite,
        }
    }

    /// The place in words, without password: for logs and errors.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("SQLite file {}", path.display()),
            Self::Postgres(options) => format!(
                "PostgreSQL database {} at {}:{}",
                options.get_database().unwrap_or_else(|| options.get_username()),
                options.get_host(),
                options.get_port(),
            ),
        }
    }
}

// By hand: the driver's options would show the password.
impl std::fmt::Debug for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Location").field(&self.describe()).finish()
    }
}

fn sqlite(address: &str, path: &str) -> Result<Location> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if path.is_empty() || path == ":memory:" {
        return Err(refused(address, "expected the path of a file".to_owned()));
    }
    Ok(Location::Sqlite(Path::new(path).to_owned()))
}

fn postgres(address: &str, url: &str) -> Result<Location> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|error| refused(address, format!("cannot be read: {error}")))?;
    Ok(Location::Postgres(Box::new(options.application_name("longmen-admin"))))
}

fn jdbc(address: &str, rest: &str) -> Result<Location> {
    let kind = rest.split(':').next().unwrap_or_default();
    match kind {
        "postgresql" => {
            let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
            if !place.starts_with("postgresql://") {
                return Err(refused(
                    address,
                    "expected jdbc:postgresql://HOST:PORT/DATABASE".to_owned(),
                ));
            }
            let kept: Vec<String> = query.split('&').filter_map(jdbc_parameter).collect();
            postgres(address, &format!("{place}?{}", kept.join("&")))
        }
        "mysql" | "mariadb" | "h2" | "oracle" | "opengauss" | "oceanbase" => Err(refused(
            address,
            format!(
                "{kind} cannot be the store, which is PostgreSQL or SQLite; `longmen-admin import`, \
                 which brings the data of an existing database over, comes in a later version"
            ),
        )),
        other => Err(refused(
            address,
            format!("unknown kind {other}, expected jdbc:postgresql://HOST:PORT/DATABASE"),
        )),
    }
}

fn jdbc_parameter(pair: &str) -> Option<String> {
    let (name, value) = pair.split_once('=')?;
    match name {
        "user" | "password" | "sslmode" => Some(format!("{name}={value}")),
        // What the Java driver means by it.
        "ssl" if value == "true" => Some("sslmode=verify-full".to_owned()),
        "currentSchema" => Some(format!("options[search_path]={value}")),
        _ => None,
    }
}

fn refused(address: &str, reason: String) -> Error {
    Error::Address { address: without_password(address), reason }
}

/// Cuts `user:password@` and everything behind `?` out of an address.
fn without_password(address: &str) -> String {
    let address = address.split('?').next().unwrap_or_default();
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            match authority.rsplit_once('@') {
                Some((_, host)) => format!("{scheme}://{host}/{path}"),
                None => address.to_owned(),
            }
        }
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Location;

    fn text(address: &str) -> String {
        match Location::parse(address) {
            Ok(location) => location.describe(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn addresses_are_read() {
        for (address, expected) in [
            ("sqlite:data/longmen.db", "SQLite file data/longmen.db"),
            ("sqlite:///var/lib/l.db?mode=rwc", "SQLite file /var/lib/l.db"),
            ("./longmen.db", "SQLite file ./longmen.db"),
            ("postgres://u:p@db:5433/gw", "PostgreSQL database gw at db:5433"),
            (
                "jdbc:postgresql://db:5432/shenyu?useUnicode=true&user=u&password=secret",
                "PostgreSQL database shenyu at db:5432",
            ),
        ] {
            assert_eq!(text(address), expected, "{address}");
        }
    }

    #[test]
    fn other_databases_are_refused_without_showing_the_password() {
        for (address, part) in [
            ("jdbc:mysql://u:secret@db:3306/shenyu?password=secret", "mysql cannot be the store"),
            ("jdbc:h2:mem:~/shenyu", "h2 cannot be the store"),
            ("jdbc:db2://db/x", "unknown kind db2"),
            ("mysql://u:secret@db/x", "unknown kind mysql"),
            ("sqlite:", "expected the path of a file"),
            ("", "expected the path of a file"),
        ] {
            let error = text(address);
            assert!(error.contains(part), "{address}: {error}");
            assert!(!error.contains("secret"), "{address}: {error}");
        }
    }

    #[test]
    fn debug_output_hides_the_password() {
        let location = Location::parse("postgres://u:secret@db/gw").unwrap();
        assert!(!format!("{location:?}").contains("secret"));
    }
}
