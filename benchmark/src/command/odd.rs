//! `longmen-bench odd`: what do other proxies make of the same odd requests?

use std::path::PathBuf;

use anyhow::Context as _;

use super::block_on;
use crate::odd::page::{Column, render};
use crate::odd::{load, peers};

/// Arguments of `longmen-bench odd`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file of requests, with what Longmen makes of each.
    #[arg(long, default_value = "bootstrap/tests/golden/odd-requests.jsonl")]
    requests: PathBuf,
    /// The page to write.
    #[arg(long, default_value = "docs/odd-requests.md")]
    out: PathBuf,
}

const HEAD: &str = "# Odd requests through three proxies\n\n\
    Written by `scripts/odd-requests.sh`, which sends each request as bytes to nginx and HAProxy as Debian has them, with a plain \
    proxy\nconfiguration. The column of Longmen is what the test `odd_requests` holds the gateway to, byte for byte, by both client \
    strategies,\nunder `compat: standard` without added headers; it comes from `bootstrap/tests/golden/odd-requests.jsonl`.\n\n\
    A cell shows what the upstream received: request line, headers but `Host` and a plain `Connection: close`, body; `⏎` is a line end. \
    A status\nstands in front where it is not 200, or where the connection was closed after it.\n";

/// Runs the requests through the other proxies and writes the page.
///
/// # Errors
/// The file cannot be read or written, a request has no outcome yet, or a proxy does not run.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let file = args.requests.display();
    let text = std::fs::read_to_string(&args.requests).with_context(|| format!("read {file}"))?;
    let requests = load(&text).with_context(|| file.to_string())?;
    let ours = requests
        .iter()
        .map(|request| {
            request.expected.clone().with_context(|| format!("{}: no outcome", request.name))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut columns = vec![Column { name: "Longmen".into(), outcomes: ours }];
    columns.extend(block_on(peers::columns(&requests))?);
    let page = format!("{HEAD}{}", render(&requests, &columns));
    std::fs::write(&args.out, page).with_context(|| format!("write {}", args.out.display()))?;
    println!("{} requests, {}", requests.len(), args.out.display());
    Ok(())
}
