//! Keeps what is in force in a file, and starts from it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longmen_core::snapshot::saved::{self, Saved, SavedError, SavedHead};
use longmen_core::telemetry::Throttle;
use rustix::process::{Pid, geteuid, test_kill_process};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::gateway::wall_clock;
use crate::management::age_seconds;
use crate::sync::{Applier, Kept};

/// The least time between two files.
const PAUSE: Duration = Duration::from_secs(1);

/// Where a file takes long, at most one part in so many of the time is spent on it.
const SHARE: u32 = 20;

/// After which time a file that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(30);

/// The end of the name of a file that is being written; the process id stands before it.
const NEW: &str = ".new";

/// The file of one gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    path: Arc<PathBuf>,
    namespace: Arc<str>,
    applier: Applier,
    /// Held while a file is written: the loop and a hand-over must not write the same side file.
    turn: Arc<Mutex<()>>,
    failed: Arc<Throttle>,
}

/// Why a file is not used.
#[derive(Debug)]
enum Unused {
    /// What is there is no file: it is left alone.
    NoFile,
    /// It is put aside, for this reason.
    Bad(String),
}

impl Keeper {
    pub(crate) fn new(path: PathBuf, namespace: &str, applier: Applier) -> Self {
        let (path, namespace) = (Arc::new(path), namespace.into());
        Self { path, namespace, applier, turn: Arc::default(), failed: Arc::default() }
    }

    /// Puts the kept configuration in force, if there is one. One that cannot be used is put aside, and
    /// the start goes on without it.
    pub(crate) fn restore(&self) {
        let begun = Instant::now();
        sweep(&self.path);
        let saved = match load(&self.path, &self.namespace) {
            Ok(None) => return,
            Ok(Some(saved)) => saved,
            Err(Unused::Bad(reason)) => return self.put_aside(&reason),
            Err(Unused::NoFile) => {
                let file = self.path.display();
                return warn!(%file, "the kept configuration is not used: expected a file");
            }
        };
        let (version, local_changes) = (saved.head.version, saved.head.local_changes);
        let age = Duration::from_secs(age_seconds(saved.head.saved_ms));
        let faults = self.applier.restore(saved).faults.len();
        info!(
            file = %self.path.display(),
            version,
            local_changes,
            ?age,
            took = ?begun.elapsed(),
            faults,
            "serving by the kept configuration until an admin can be reached"
        );
    }

    fn put_aside(&self, text: &str) {
        let aside = beside(&self.path, "ignored");
        let file = self.path.display();
        match fs::rename(&*self.path, &aside) {
            Ok(()) => {
                let aside = aside.display();
                warn!(%file, %aside, "the kept configuration is not used, and put aside: {text}");
            }
            Err(error) => {
                warn!(%file, "the kept configuration is not used: {text}; nor can it be put aside: {error}");
            }
        }
    }

    /// Keeps what comes into force, until `served`, and then what is in force last, unless there is a
    /// successor, which keeps what it has. At `stop` nothing is put off any more: little time may be left
    /// when the last connection has ended.
    pub(crate) async fn run(
        self,
        stop: CancellationToken,
        served: CancellationToken,
        handed_over: Arc<AtomicBool>,
    ) {
        let mut stopping = false;
        loop {
            let last = tokio::select! {
                () = self.applier.changed() => false,
                () = served.cancelled() => true,
            };
            let begun = Instant::now();
            let well = handed_over.load(Ordering::Relaxed) || self.keep().await;
            if last {
                return;
            }
            let pause = if well { PAUSE.max(begun.elapsed() * SHARE) } else { RETRY };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled(), if !stopping => stopping = true,
                () = served.cancelled() => {}
            }
        }
    }

    /// Writes what is in force, if it is not kept yet. Says whether it is now; goes on where nobody waits
    /// any more.
    pub(crate) async fn keep(&self) -> bool {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        if !self.applier.has_changed() {
            return true;
        }
        let kept = self.applier.copy().await;
        let keeper = self.clone();
        let writing = spawn_blocking(move || {
            let _turn = turn;
            keeper.write(&kept)
        });
        writing.await.unwrap_or(false)
    }

    fn write(&self, kept: &Kept) -> bool {
        let head = SavedHead {
            namespace: self.namespace.as_ref().to_owned(),
            epoch: kept.position.epoch.clone(),
            version: kept.position.version,
            saved_ms: kept.restored_ms.unwrap_or_else(wall_clock),
            local_changes: kept.local_changes,
        };
        let Err(error) = store(&self.path, &head, kept) else { return true };
        self.applier.not_kept();
        if let Some(others) = self.failed.pass() {
            let file = self.path.display();
            warn!(%file, "the configuration in force cannot be kept: {error}{others}");
        }
        false
    }
}

/// The file, if there is one.
fn load(path: &Path, namespace: &str) -> Result<Option<Saved>, Unused> {
    let bad = |error: io::Error| Unused::Bad(error.to_string());
    // Not opened before it is known to be a file: a pipe would hold up the start.
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(error)),
    };
    if !found.is_file() {
        return Err(Unused::NoFile);
    }
    trusted(&found).map_err(Unused::Bad)?;
    let file = File::open(path).map_err(bad)?;
    let saved = saved::read(BufReader::with_capacity(256 * 1024, file))
        .map_err(|error: SavedError| Unused::Bad(error.to_string()))?;
    let found = &saved.head.namespace;
    if found != namespace {
        return Err(Unused::Bad(format!("namespace: expected {namespace:?}, found {found:?}")));
    }
    Ok(Some(saved))
}

/// What routes requests must come from nobody else, and its secrets are nobody else's.
fn trusted(found: &Metadata) -> Result<(), String> {
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("others can read or write it: expected mode 600, found {mode:o}"));
    }
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(format!("it is another user's: expected user {own}, found {owner}"));
    }
    Ok(())
}

/// Takes away what processes left that were killed while they wrote.
fn sweep(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = fs::read_dir(folder_of(path)) else { return };
    for entry in entries.flatten() {
        let other = entry.file_name();
        let writer = other
            .to_str()
            .and_then(|other| other.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(NEW))
            .and_then(|id| Pid::from_raw(id.parse().ok()?));
        let gone = |id| test_kill_process(id) == Err(rustix::io::Errno::SRCH);
        if writer.is_some_and(gone) {
            // Another start may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new("."))
}

/// Writes a new file and puts it in the place of the old one.
fn store(path: &Path, head: &SavedHead, kept: &Kept) -> io::Result<()> {
    let folder = folder_of(path);
    if !folder.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // Another process may write at the same time: a successor, for one.
    let side = beside(path, &format!("{}{NEW}", std::process::id()));
    let written = write(&side, head, kept).and_then(|()| fs::rename(&side, path));
    if written.is_err() {
        let _ = fs::remove_file(&side);
    }
    written?;
    // That the new name outlives a crash of the machine, too.
    File::open(folder)?.sync_all()
}

fn write(side: &Path, head: &SavedHead, kept: &Kept) -> io::Result<()> {
    // One that was left behind may have other permissions.
    match fs::remove_file(side) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(side)?;
    let mut out = BufWriter::with_capacity(256 * 1024, file);
    saved::write(&mut out, head, &kept.objects)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The file's name with something behind it.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

#[cfg(test)]
mod tests;
