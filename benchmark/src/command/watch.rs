//! `longmen-bench watch`: when does an answer change?

use std::time::{Duration, Instant};

use super::{block_on, interrupted};
use crate::client::{Answer, Connection, Server};

/// Arguments of `longmen-bench watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The gateway, http://host:port.
    #[arg(long, default_value = "http://127.0.0.1:9195")]
    gateway: String,
    /// Pause between an answer and the next request, in milliseconds.
    #[arg(long, default_value_t = 1)]
    interval_ms: u64,
    /// Stop after so many seconds; without it at Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// The path to ask for, with its query.
    path: String,
}

/// Prints a line at the start and at each change of status or upstream: the time since the start
/// in milliseconds, the status, the upstream. What was counted in between goes with it.
///
/// # Errors
/// When the gateway's address has another form.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let server = Server::parse(&args.gateway)?;
    block_on(async {
        let limit = async {
            match args.seconds {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = poll(server, args) => Ok(()),
            outcome = interrupted() => outcome,
            () = limit => Ok(()),
        }
    })
}

async fn poll(server: Server, args: &Args) {
    let started = Instant::now();
    let mut connection = Connection::new(server);
    let mut last = String::new();
    let mut same = 0_u64;
    loop {
        let outcome = connection.get(&args.path).await;
        let now = match &outcome {
            Ok(answer) => describe(answer),
            Err(error) => format!("no answer: {}", error.root_cause()),
        };
        same += 1;
        if now != last {
            let ms = started.elapsed().as_secs_f64() * 1_000.0;
            println!("{ms:12.1} ms  {now}  (after {same} requests)");
            last = now;
            same = 0;
        }
        tokio::time::sleep(Duration::from_millis(args.interval_ms)).await;
    }
}

fn describe(answer: &Answer) -> String {
    let upstream = answer.header("x-upstream").map(|name| format!("by upstream {name}"));
    format!("{} {}", answer.status, upstream.unwrap_or_else(|| "by the gateway itself".into()))
}
