//! Addresses of databases: JDBC's form and the usual one.

use std::path::PathBuf;

use longmen_core::config::Secret;

/// What an address names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Jdbc {
    /// PostgreSQL, as `postgres://` address with user and password.
    Postgres(Secret),
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A database that is no store of ours, by its name.
    Other(String),
    /// No address of a database.
    Unknown,
}

/// Reads an address. User and password of the address itself win over those beside it.
pub(super) fn read(url: &str, username: Option<&str>, password: Option<&Secret>) -> Jdbc {
    let url = url.trim();
    if let Some(rest) = strip(url, &["postgres://", "postgresql://"]) {
        return postgres(rest, username, password);
    }
    if let Some(path) = strip(url, &["jdbc:sqlite:", "sqlite://", "sqlite:"]) {
        let path = path.split('?').next().unwrap_or(path);
        return if path.is_empty() { Jdbc::Unknown } else { Jdbc::Sqlite(PathBuf::from(path)) };
    }
    if let Some(rest) = strip(url, &["jdbc:postgresql://"]) {
        return postgres(rest, username, password);
    }
    // JDBC's short form: a database on this machine.
    if let Some(name) = strip(url, &["jdbc:postgresql:"]) {
        return postgres(&format!("localhost/{name}"), username, password);
    }
    let scheme = strip(url, &["jdbc:"]).unwrap_or(url);
    match scheme.split(':').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "mysql" => Jdbc::Other("MySQL".to_owned()),
        "mariadb" => Jdbc::Other("MariaDB".to_owned()),
        "h2" => Jdbc::Other("H2".to_owned()),
        "oracle" => Jdbc::Other("Oracle".to_owned()),
        "opengauss" => Jdbc::Other("openGauss".to_owned()),
        "oceanbase" => Jdbc::Other("OceanBase".to_owned()),
        "sqlserver" => Jdbc::Other("SQL Server".to_owned()),
        _ => Jdbc::Unknown,
    }
}

fn strip<'u>(url: &'u str, prefixes: &[&str]) -> Option<&'u str> {
    prefixes.iter().find_map(|prefix| {
        let head = url.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| &url[prefix.len()..])
    })
}

/// Puts the parts of `rest`, the address after `//`, together again as one with credentials.
fn postgres(rest: &str, username: Option<&str>, password: Option<&Secret>) -> Jdbc {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = place.split_once('/').unwrap_or((place, ""));
    let (own_credentials, host) = match authority.rsplit_once('@') {
        Some((credentials, host)) => (Some(credentials), host),
        None => (None, authority),
    };
    if host.is_empty() && query.is_empty() || host.contains(' ') {
        return Jdbc::Unknown;
    }
    let (mut user, mut pass, mut kept) = (None, None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("user", value)) => user = Some(value.to_owned()),
            Some(("password", value)) => pass = Some(value.to_owned()),
            Some((key, value)) => kept.extend(parameter(key, value)),
            None => {}
        }
    }
    let user = user.or_else(|| username.map(escaped));
    let pass = pass.or_else(|| password.map(|secret| escaped(secret.expose())));
    let credentials = match (own_credentials, user, pass) {
        (Some(own), ..) => format!("{own}@"),
        (None, Some(user), Some(pass)) => format!("{user}:{pass}@"),
        (None, Some(user), None) => format!("{user}@"),
        (None, None, _) => String::new(),
    };
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Jdbc::Postgres(Secret::new(format!("postgres://{credentials}{host}/{name}{query}")))
}

/// A parameter of the Java driver in the words of ours; `None` where it means nothing here.
fn parameter(key: &str, value: &str) -> Option<String> {
    match key {
        "ssl" if value == "true" => Some("sslmode=require".to_owned()),
        "sslmode" | "sslrootcert" | "sslcert" | "sslkey" | "options" | "host" => {
            Some(format!("{key}={value}"))
        }
        "application_name" | "ApplicationName" => Some(format!("application_name={value}")),
        "currentSchema" => Some(format!("options=-c%20search_path%3D{value}")),
        _ => None,
    }
}

/// Escapes what has a meaning in an address.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use longmen_core::config::Secret;

    use super::{Jdbc, read};

    #[test]
    fn postgres_addresses() {
        for (url, want) in [
            ("jdbc:postgresql://db:5433/shenyu", "postgres://me:p%40ss%2F@db:5433/shenyu"),
            (
                "jdbc:postgresql://db/shenyu?ssl=true&stringtype=unspecified",
                "postgres://me:p%40ss%2F@db/shenyu?sslmode=require",
            ),
            ("jdbc:postgresql:shenyu", "postgres://me:p%40ss%2F@localhost/shenyu"),
            ("jdbc:postgresql://db/shenyu?user=u&password=x", "postgres://u:x@db/shenyu"),
            ("postgres://a:b@db:5432/longmen", "postgres://a:b@db:5432/longmen"),
            ("postgresql://db/longmen", "postgres://me:p%40ss%2F@db/longmen"),
            (
                "JDBC:PostgreSQL://db/x?currentSchema=s",
                "postgres://me:p%40ss%2F@db/x?options=-c%20search_path%3Ds",
            ),
            (
                "postgres:///longmen?host=/var/run/postgresql",
                "postgres://me:p%40ss%2F@/longmen?host=/var/run/postgresql",
            ),
        ] {
            let got = read(url, Some("me"), Some(&Secret::new("p@ss/")));
            let Jdbc::Postgres(got) = got else { panic!("{url}: {got:?}") };
            assert_eq!(got.expose(), want, "{url}");
        }
    }

    #[test]
    fn other_addresses() {
        for (url, want) in [
            ("jdbc:mysql://localhost:3306/shenyu?useSSL=false", Jdbc::Other("MySQL".to_owned())),
            ("jdbc:h2:mem:~/shenyu;DB_CLOSE_DELAY=-1", Jdbc::Other("H2".to_owned())),
            ("jdbc:oracle:thin:@localhost:1521/shenyu", Jdbc::Other("Oracle".to_owned())),
            ("jdbc:opengauss://localhost:5432/shenyu", Jdbc::Other("openGauss".to_owned())),
            ("mysql://localhost/shenyu", Jdbc::Other("MySQL".to_owned())),
            ("jdbc:sqlite:/var/lib/l.db", Jdbc::Sqlite(PathBuf::from("/var/lib/l.db"))),
            ("sqlite://data/l.db?mode=rwc", Jdbc::Sqlite(PathBuf::from("data/l.db"))),
            ("jdbc:postgresql://", Jdbc::Unknown),
            ("localhost:5432", Jdbc::Unknown),
            ("", Jdbc::Unknown),
        ] {
            assert_eq!(read(url, None, None), want, "{url}");
        }
    }
}
