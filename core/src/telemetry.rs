//! Logging of both binaries.
//!
//! Plain lines on standard error; levels from `logging.level.*` (names of modules, `root` for all),
//! overridden by the variable `LONGMEN_LOG` in the syntax of `tracing`'s filters. Rules for what is
//! logged: a message readable alone and fields to query, an error once and where it is handled,
//! nothing secret, no bodies, nothing at `info` per request.

use std::collections::BTreeMap;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Installs the subscriber of the process. Called once, first thing in `main`.
///
/// `levels` maps names to `error`, `warn`, `info`, `debug`, `trace` or `off`. Names of Java packages
/// are accepted and mean nothing here.
///
/// # Errors
/// A filter in `LONGMEN_LOG` that cannot be read, or a subscriber that is installed already.
pub fn init(levels: &BTreeMap<String, String>, json: bool) -> Result<(), String> {
    let filter = match std::env::var("LONGMEN_LOG") {
        Ok(text) => {
            EnvFilter::try_new(&text).map_err(|error| format!("LONGMEN_LOG: {text:?}: {error}"))?
        }
        Err(_) => EnvFilter::try_new(directives(levels)).map_err(|error| error.to_string())?,
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = if json {
        builder.json().finish().try_init()
    } else {
        builder.with_target(false).finish().try_init()
    };
    installed.map_err(|error| format!("logging: {error}"))
}

/// The filter text of configured levels: `root` applies to all, our own modules by name.
fn directives(levels: &BTreeMap<String, String>) -> String {
    let level = |text: &str| text.trim().to_ascii_lowercase();
    let mut parts = vec![levels.get("root").map_or_else(|| "info".to_owned(), |l| level(l))];
    for (name, text) in levels {
        match name.as_str() {
            "root" => {}
            "org.apache.shenyu" => {
                for module in
                    ["longmen_core", "longmen_bootstrap", "longmen_admin", "longmen_plugins"]
                {
                    parts.push(format!("{module}={}", level(text)));
                }
            }
            name if name.starts_with("longmen") => parts.push(format!("{name}={}", level(text))),
            _ => {}
        }
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::directives;

    #[test]
    fn levels_of_a_stock_file_apply_to_our_modules() {
        let levels = [
            ("root", "warn"),
            ("org.apache.shenyu", "DEBUG"),
            ("org.springframework.boot", "info"),
            ("longmen_core::snapshot", "trace"),
        ];
        let levels = levels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(
            directives(&levels),
            "warn,longmen_core::snapshot=trace,longmen_core=debug,longmen_bootstrap=debug,\
             longmen_admin=debug,longmen_plugins=debug"
        );
    }
}
