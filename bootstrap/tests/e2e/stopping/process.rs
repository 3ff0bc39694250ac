//! The gateway's binary as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::LIMIT;

const BINARY: &str = env!("CARGO_BIN_EXE_longmen-bootstrap");

/// A process. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
    _folder: TempDir,
}

impl Process {
    pub(crate) fn start(arguments: &[String]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(arguments);
        Self::run(command)
    }

    /// Starts it as a supervisor would: with a listening socket as descriptor 3.
    pub(crate) fn with_socket(arguments: &[String], listener: &TcpListener) -> Self {
        let mut command = Command::new("sh");
        let script = r#"export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@" 3<&0 0</dev/null"#;
        command.args(["-c", script, BINARY]).args(arguments);
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(listener.try_clone().unwrap())));
        Self::run(command)
    }

    /// Starts it with these limits of open files.
    pub(crate) fn with_open_files(arguments: &[String], soft: u64, hard: u64) -> Self {
        let mut command = Command::new("sh");
        let script = format!(r#"ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$0" "$@""#);
        command.args(["-c", &script, BINARY]).args(arguments);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command.current_dir(folder.path()).stderr(Stdio::piped()).stdout(Stdio::null());
        command.env_remove("LONGMEN_LOG");
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self { child, log, reader, _folder: folder }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a text in the log.
    pub(crate) async fn says(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log();
            if let Some(line) = log.lines().find(|line| line.contains(text)) {
                return line.to_owned();
            }
            assert!(begun.elapsed() < LIMIT, "never said {text:?}: {log}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Where it serves.
    pub(crate) async fn address(&self) -> SocketAddr {
        let line = self.says("serving address=").await;
        let (_, rest) = line.split_once("serving address=").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Where operators ask.
    pub(crate) async fn management(&self) -> SocketAddr {
        let line = self.says(" management=").await;
        let (_, rest) = line.split_once(" management=").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, and until all of the log is read.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap()
                && self.reader.is_finished()
            {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "does not end: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until requests are routed there.
pub(crate) async fn until_routed(address: SocketAddr) {
    let client = crate::support::client();
    let asking = async {
        loop {
            let asked = client.get(format!("http://{address}/hello")).send().await;
            if asked.is_ok_and(|answer| answer.headers().contains_key("x-upstream")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("nothing is routed");
}
