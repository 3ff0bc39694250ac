//! Processes under measurement: started on chosen cores, looked at through `/proc`, ended by id.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Ticks per second of the times in `/proc/<pid>/stat`: fixed for user space on Linux.
const TICKS_PER_SECOND: u64 = 100;

/// How long a process may take to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Cores as `taskset` takes them, such as `0` or `1-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub String);

/// A process that ends with this value.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

/// Processor time a process has used, in whole ticks of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuTime(u64);

impl Process {
    /// Starts a program on the given cores; what it prints goes to `log`.
    ///
    /// # Errors
    /// When the log cannot be made, or `taskset` is missing. A program that cannot be run ends at
    /// once, which [`Process::ensure_running`] tells.
    pub fn start(
        name: &str,
        cores: &Cores,
        log: &Path,
        program: &Path,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        Self::start_with(name, cores, log, program, arguments, &[])
    }

    /// Starts a program as [`Process::start`] does, with more variables in its environment: what does
    /// not belong into the list of processes.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(
        name: &str,
        cores: &Cores,
        log: &Path,
        program: &Path,
        arguments: &[String],
        variables: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        let out = File::create(log).with_context(|| format!("create {}", log.display()))?;
        let child = Command::new("taskset")
            .args(["-c", &cores.0])
            .arg(program)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("start {} by taskset", program.display()))?;
        Ok(Self { name: name.to_owned(), child })
    }

    /// Its id. `taskset` becomes the program, so it is the program's own.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, by SIGTERM.
    ///
    /// # Errors
    /// When `kill` is missing or fails.
    pub fn terminate(&self) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().context("run kill")?;
        ensure!(status.success(), "kill -TERM {id}: {status}");
        Ok(())
    }

    /// Ends it at once, by SIGKILL.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().with_context(|| format!("kill {}", self.name))?;
        self.child.wait().with_context(|| format!("wait for {}", self.name))?;
        Ok(())
    }

    /// Its status, if it has ended.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("ask for {}", self.name))
    }

    /// # Errors
    /// When it has ended; the message gives its status and the end of its log.
    pub fn ensure_running(&mut self, log: &Path) -> anyhow::Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let text = fs::read_to_string(log).unwrap_or_default();
        let tail: Vec<_> = text.lines().rev().take(10).collect();
        let tail: Vec<_> = tail.into_iter().rev().collect();
        anyhow::bail!("{} ended with {status}: {}", self.name, tail.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let asked = self.terminate();
        let deadline = Instant::now() + STOP_LIMIT;
        while asked.is_ok() && Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // It had its time; nothing of a measurement may outlive it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl CpuTime {
    /// User and system time of all threads of a process so far.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        Self::parse(&text).with_context(|| format!("{path}: unknown form: {text:?}"))
    }

    /// Microseconds since `earlier`.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) * 1_000_000 / TICKS_PER_SECOND
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field is the name in parentheses and may hold anything, spaces included.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some(Self(user + system))
    }
}

/// Memory a process has in use, in KiB.
///
/// # Errors
/// When there is no such process.
pub fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.with_context(|| format!("{path} has no VmRSS"))
}

/// The only child of a process; nginx does its work in one.
///
/// # Errors
/// When it has none or several.
pub fn only_child(pid: u32) -> anyhow::Result<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let children: Vec<u32> = text.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    ensure!(children.len() == 1, "process {pid} has {} children, expected 1", children.len());
    Ok(children[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0 3";
        assert_eq!(CpuTime::parse(stat), Some(CpuTime(154)));
        assert_eq!(CpuTime(154).micros_since(CpuTime(100)), 540_000);
        assert_eq!(CpuTime::parse("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let pid = std::process::id();
        assert!(resident_kib(pid).expect("memory of this process") > 0);
        let before = CpuTime::of(pid).expect("time of this process");
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let used = CpuTime::of(pid).expect("time of this process").micros_since(before);
        assert!(used > 0, "200 ms of work are more than a tick");
    }
}
