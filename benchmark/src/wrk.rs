//! The load generator `wrk`: how it is called and what it prints.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::load::LoadRun;
use crate::process::Cores;

/// Runs `wrk` with one thread on the given cores.
///
/// # Errors
/// When it cannot be started, fails, or prints something unknown.
pub fn run(cores: &Cores, connections: u32, seconds: u32, url: &str) -> anyhow::Result<LoadRun> {
    let output = Command::new("taskset")
        .args(["-c", &cores.0, "wrk", "--latency", "-t1"])
        .args([format!("-c{connections}"), format!("-d{seconds}s"), url.to_owned()])
        .output()
        .context("start wrk by taskset")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "wrk {url}: {}{text}{errors}", output.status);
    parse(&text).with_context(|| format!("wrk printed something unknown: {text}"))
}

fn parse(text: &str) -> Option<LoadRun> {
    let mut run = LoadRun { requests: 0, rate: 0.0, p50_ms: 0.0, p99_ms: 0.0, errors: 0 };
    let (mut requests, mut rate, mut p50, mut p99) = (None, None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some((count, _)) = line.split_once(" requests in ") {
            requests = count.parse().ok();
        } else if let Some(value) = line.strip_prefix("Requests/sec:") {
            rate = value.trim().parse().ok();
        } else if let Some(value) = line.strip_prefix("50%") {
            p50 = milliseconds(value.trim());
        } else if let Some(value) = line.strip_prefix("99%") {
            p99 = milliseconds(value.trim());
        } else if let Some(value) = line.strip_prefix("Non-2xx or 3xx responses:") {
            run.errors += value.trim().parse::<u64>().ok()?;
        } else if let Some(kinds) = line.strip_prefix("Socket errors:") {
            for kind in kinds.split(',') {
                run.errors += kind.trim().rsplit(' ').next()?.parse::<u64>().ok()?;
            }
        }
    }
    run.requests = requests?;
    run.rate = rate?;
    run.p50_ms = p50?;
    run.p99_ms = p99?;
    Some(run)
}

/// `wrk` writes `812.00us`, `1.20ms`, `2.01s` or `1.00m`.
fn milliseconds(text: &str) -> Option<f64> {
    let (number, factor) = if let Some(number) = text.strip_suffix("us") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1_000.0)
    } else {
        (text.strip_suffix('m')?, 60_000.0)
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "Running 1s test @ http://127.0.0.1:1/4k\n  1 threads and 16 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
        Latency   398.54us  120.11us   4.59ms   90.15%\n    \
        Req/Sec    40.52k     1.62k   42.33k    81.82%\n  Latency Distribution\n     \
        50%  379.00us\n     75%  432.00us\n     90%  500.00us\n     99%    1.25ms\n  \
        44342 requests in 1.10s, 175.16MB read\nRequests/sec:  40312.94\n\
        Transfer/sec:    159.25MB\n";

    #[test]
    fn a_clean_run() {
        let run = parse(CLEAN).expect("the form wrk 4 prints");
        assert_eq!(
            run,
            LoadRun { requests: 44_342, rate: 40_312.94, p50_ms: 0.379, p99_ms: 1.25, errors: 0 }
        );
    }

    #[test]
    fn errors_are_added_up() {
        let text = CLEAN.replace(
            "Requests/sec",
            "  Socket errors: connect 1, read 2, write 0, timeout 4\n  \
             Non-2xx or 3xx responses: 10\nRequests/sec",
        );
        assert_eq!(parse(&text).expect("the form wrk 4 prints").errors, 17);
    }

    #[test]
    fn units_and_unknown_text() {
        assert_eq!(milliseconds("2.50s"), Some(2_500.0));
        assert_eq!(milliseconds("1.00m"), Some(60_000.0));
        assert_eq!(milliseconds("1.00h"), None);
        assert_eq!(parse("unable to connect"), None);
    }
}
