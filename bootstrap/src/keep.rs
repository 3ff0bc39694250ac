//! Keeps what is in force in a file, and starts from it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longmen_core::snapshot::saved::{self, Saved, SavedError, SavedHead};
use longmen_core::snapshot::{ConfigState, Position};
use longmen_core::telemetry::Throttle;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::gateway::wall_clock;
use crate::sync::Applier;

/// The least time between two files.
const PAUSE: Duration = Duration::from_secs(1);

/// Where a file takes long, as a share of the time at most one part in so many is spent on it.
const SHARE: u32 = 20;

/// The file of one gateway.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    path: PathBuf,
    namespace: String,
    applier: Applier,
}

impl Keeper {
    pub(crate) const fn new(path: PathBuf, namespace: String, applier: Applier) -> Self {
        Self { path, namespace, applier }
    }

    /// Puts the kept configuration in force, if there is one. One that cannot be used is put aside, and
    /// the start goes on without it.
    pub(crate) fn restore(&self) {
        let begun = Instant::now();
        let saved = match load(&self.path) {
            Ok(None) => return,
            Ok(Some(saved)) if saved.head.namespace == self.namespace => saved,
            Ok(Some(saved)) => {
                let found = saved.head.namespace;
                let text = format!("namespace: expected {:?}, found {found:?}", self.namespace);
                return self.put_aside(&text);
            }
            Err(error) => return self.put_aside(&error.to_string()),
        };
        let Saved { head, state } = saved;
        let age = Duration::from_millis(wall_clock().abs_diff(head.saved_ms));
        let faults = self.applier.restore(state, head.position(), head.saved_ms).faults.len();
        info!(
            file = %self.path.display(),
            version = head.version,
            age = ?Duration::from_secs(age.as_secs()),
            took = ?begun.elapsed(),
            faults,
            "serving by the kept configuration until an admin can be reached"
        );
    }

    fn put_aside(&self, text: &str) {
        let aside = beside(&self.path, "ignored");
        let file = self.path.display();
        match fs::rename(&self.path, &aside) {
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
    /// successor, which keeps what it has.
    pub(crate) async fn run(self, served: CancellationToken, handed_over: Arc<AtomicBool>) {
        let failed = Throttle::default();
        loop {
            let last = tokio::select! {
                () = self.applier.changed() => false,
                () = served.cancelled() => true,
            };
            let begun = Instant::now();
            let successor = last && handed_over.load(Ordering::Relaxed);
            if self.applier.has_changed() && !successor {
                self.keep(&failed).await;
            }
            if last {
                return;
            }
            let pause = PAUSE.max(begun.elapsed() * SHARE);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = served.cancelled() => {}
            }
        }
    }

    async fn keep(&self, failed: &Throttle) {
        let (state, position) = self.applier.copy().await;
        let (path, namespace) = (self.path.clone(), self.namespace.clone());
        let written = spawn_blocking(move || store(&path, namespace, &position, &state)).await;
        let Ok(Err(error)) = written else { return };
        if let Some(others) = failed.pass() {
            let file = self.path.display();
            warn!(%file, "the configuration in force cannot be kept: {error}{others}");
        }
    }
}

/// The file, if there is one.
fn load(path: &Path) -> Result<Option<Saved>, SavedError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    // What routes requests must come from nobody else.
    if found.mode() & 0o022 != 0 {
        let text =
            format!("others can write it: expected mode 600, found {:o}", found.mode() & 0o777);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text).into());
    }
    saved::read(BufReader::with_capacity(256 * 1024, file)).map(Some)
}

/// Writes a new file and puts it in the place of the old one.
fn store(
    path: &Path,
    namespace: String,
    position: &Position,
    state: &ConfigState,
) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.exists()
    {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // Another process may write at the same time: a successor, for one.
    let side = beside(path, &format!("{}.new", std::process::id()));
    let written = write(&side, namespace, position, state).and_then(|()| fs::rename(&side, path));
    if written.is_err() {
        let _ = fs::remove_file(&side);
    }
    written?;
    // That the new name outlives a crash of the machine, too.
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

fn write(
    side: &Path,
    namespace: String,
    position: &Position,
    state: &ConfigState,
) -> io::Result<()> {
    // One that was left behind may have other permissions.
    match fs::remove_file(side) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(side)?;
    let (epoch, version) = (position.epoch.clone(), position.version);
    let head = SavedHead { namespace, epoch, version, saved_ms: wall_clock() };
    let mut out = BufWriter::with_capacity(256 * 1024, file);
    saved::write(&mut out, &head, state)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The file's name with something behind it.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}
