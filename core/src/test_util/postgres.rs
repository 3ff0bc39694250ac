//! PostgreSQL for tests: one private server per test process, one fresh database per test.
//!
//! The server comes from `scripts/postgres.sh`, or, where `LONGMEN_TEST_POSTGRES_URL` names one,
//! from there: `make test` starts one for all test binaries. A private one is stopped when the test
//! process ends, however it ends: it waits for the end of a pipe that the process holds.
//!
//! Without a server tests fail; none is skipped.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names a running server.
pub const URL_VARIABLE: &str = "LONGMEN_TEST_POSTGRES_URL";

#[derive(Debug)]
struct Server {
    url: String,
    /// Holds the pipe whose end stops the server.
    _process: Option<Child>,
}

/// Makes an empty database and returns its address.
///
/// Blocks for the time that takes, the first call also for starting the server.
///
/// # Panics
/// When PostgreSQL is not installed or does not start: the test cannot pass without it.
#[must_use]
pub fn fresh_database() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);

    let server = server();
    // Several processes may share the server, one after the other under the same process id.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{since}_{}_{count}", std::process::id());
    let made = script()
        .args(["create", &name])
        .env("URL", &server.url)
        .output()
        .expect("scripts/postgres.sh can be run");
    assert!(
        made.status.success(),
        "database {name} was not made: {}",
        String::from_utf8_lossy(&made.stderr)
    );
    let (head, _) = server.url.rsplit_once('/').expect("the address ends in /DATABASE");
    format!("{head}/{name}")
}

/// The address of the server, with its user and password; starts it if need be.
///
/// # Panics
/// As [`fresh_database`].
#[must_use]
pub fn server_url() -> &'static str {
    &server().url
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();

    SERVER.get_or_init(|| match std::env::var(URL_VARIABLE) {
        Ok(url) if !url.is_empty() => Server { url, _process: None },
        _ => start(),
    })
}

fn start() -> Server {
    let folder = std::env::temp_dir().join(format!("longmen-test-{}", std::process::id()));
    let mut process = script()
        .arg("run")
        .arg(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Not inherited: who reads this process's output would wait for the server's end.
        .stderr(Stdio::piped())
        .spawn()
        .expect("scripts/postgres.sh can be run");
    let output = process.stdout.take().expect("the output is piped");
    let mut url = String::new();
    BufReader::new(output).read_line(&mut url).expect("the output is text");
    if url.trim().is_empty() {
        let ended = process.wait_with_output().expect("the process can be waited for");
        panic!("PostgreSQL did not start: {}", String::from_utf8_lossy(&ended.stderr));
    }
    Server { url: url.trim().to_owned(), _process: Some(process) }
}

fn script() -> Command {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join("scripts").join("postgres.sh");
    Command::new(path)
}
