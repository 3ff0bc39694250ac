//! `longmen-bench load`: so many requests over so many connections.

use std::time::Duration;

use anyhow::Context as _;

use super::block_on;
use crate::client::Server;
use crate::load::{Load, Shape};

/// Arguments of `longmen-bench load`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to ask for, http://address:port/path; the address is one of IP.
    url: String,
    /// Requests in all and connections, as requests/connections.
    #[arg(long, default_value = "90000/100")]
    shape: Shape,
    /// When to end although requests are left, in milliseconds.
    #[arg(long)]
    limit_ms: Option<u64>,
}

/// Sends everything and prints requests, rate, latencies and errors as one line of JSON.
///
/// # Errors
/// When the address has another form. What goes wrong with requests is counted.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let run = block_on(args.load()?.send())?;
    println!("{}", serde_json::to_string(&run)?);
    Ok(())
}

impl Args {
    fn load(&self) -> anyhow::Result<Load> {
        let expected = || format!("{:?} is not of the form http://address:port/path", self.url);
        let rest = self.url.strip_prefix("http://").with_context(expected)?;
        let (authority, path) = rest.split_at(rest.find('/').with_context(expected)?);
        Ok(Load {
            server: Server::parse(&format!("http://{authority}")).with_context(expected)?,
            path: path.to_owned(),
            shape: self.shape,
            limit: self.limit_ms.map(Duration::from_millis),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn load(arguments: &[&str]) -> anyhow::Result<Load> {
        Command::try_parse_from([&["load"][..], arguments].concat())?.args.load()
    }

    #[test]
    fn an_address_is_a_server_and_a_path() {
        let arguments = ["http://127.0.0.1:9195/a/b?c=d", "--shape", "900/50", "--limit-ms", "250"];
        let load = load(&arguments).expect("arguments");
        assert_eq!((load.server.authority(), load.path.as_str()), ("127.0.0.1:9195", "/a/b?c=d"));
        assert_eq!(load.shape, Shape { requests: 900, connections: 50 });
        assert_eq!(load.limit, Some(Duration::from_millis(250)));
    }

    #[test]
    fn other_forms_are_refused_by_name() {
        for url in ["127.0.0.1:9195/a", "http://127.0.0.1:9195", "http://127.0.0.1/a"] {
            let error = format!("{:#}", load(&[url]).expect_err("another form"));
            assert!(error.contains(&format!("{url:?} is not of the form")), "{error}");
        }
        let error = load(&["http://127.0.0.1:1/", "--shape", "50"]).expect_err("no shape");
        assert!(error.to_string().contains("expected requests/connections"), "{error}");
    }
}
