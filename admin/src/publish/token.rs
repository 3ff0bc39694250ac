//! The sync token: what lets a gateway on another machine in.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use longmen_db::Store;

use crate::config::SyncConfig;

/// Bytes of randomness in a generated token.
const RANDOM_BYTES: usize = 32;

/// The token of this install.
pub(super) struct SyncToken(Box<str>);

impl SyncToken {
    /// The configured token, else the one kept in the file at `path`, else a new one that is then
    /// kept there so that only its owner can read it.
    ///
    /// # Errors
    /// The file can neither be read nor made.
    pub(super) fn open(configured: Option<&str>, path: &Path) -> anyhow::Result<Self> {
        if let Some(token) = configured.map(str::trim).filter(|token| !token.is_empty()) {
            return Ok(Self(token.into()));
        }
        let token = match read(path).with_context(|| format!("read {}", path.display()))? {
            Some(token) => token,
            None => make(path).with_context(|| format!("write {}", path.display()))?,
        };
        Ok(Self(token.into()))
    }

    /// Whether `given` is this token. Takes the same time for every token of the same length.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), given).is_ok()
    }
}

/// Sees to it that the admins of one database have the same token, so that a gateway that knows one can
/// move to any of them: the first one leaves what it has in the database, the others take it from there.
/// A configured token is the operator's own business, and a file of SQLite has one admin.
///
/// # Errors
/// The database's; the file can neither be read nor made.
pub(crate) async fn share_token(store: &Store, config: &SyncConfig) -> anyhow::Result<()> {
    /// The name of the fact.
    const NAME: &str = "sync_token";
    let configured = config.token.as_ref().map(|token| token.expose().trim());
    if !store.is_shared() || configured.is_some_and(|token| !token.is_empty()) {
        return Ok(());
    }
    let path = &config.token_path;
    let kept = read(path).with_context(|| format!("read {}", path.display()))?;
    let stored = store.shared_fact(NAME, kept.as_deref()).await.context("read the sync token")?;
    let writing = || format!("write {}", path.display());
    let (kept, stored) = match (kept, stored) {
        (Some(kept), Some(stored)) => (kept, stored),
        (None, Some(stored)) => return write(path, &stored).with_context(writing),
        (_, None) => {
            let made = make(path).with_context(writing)?;
            let stored =
                store.shared_fact(NAME, Some(&made)).await.context("share the sync token")?;
            match stored {
                // Another admin was faster.
                Some(stored) if stored != made => {
                    return write(path, &stored).with_context(writing);
                }
                _ => return Ok(()),
            }
        }
    };
    if kept != stored {
        tracing::warn!(
            path = %path.display(),
            "the sync token of this admin is not that of the other admins on the database, so gateways \
             cannot move between them; without the file this admin takes theirs"
        );
    }
    Ok(())
}

// By hand, so that the token reaches no log.
impl std::fmt::Debug for SyncToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SyncToken")
    }
}

/// The kept token; `None` without a file, or with an empty one that a crash left behind.
fn read(path: &Path) -> io::Result<Option<String>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let token = text.trim();
    if token.is_empty() {
        return Ok(None);
    }
    let permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "others could read the sync token; now only its owner can");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(Some(token.to_owned()))
}

/// Makes a token and keeps it.
fn make(path: &Path) -> io::Result<String> {
    let mut random = [0_u8; RANDOM_BYTES];
    aws_lc_rs::rand::fill(&mut random)
        .map_err(|_| io::Error::other("the system gives no random bytes"))?;
    let token = URL_SAFE_NO_PAD.encode(random);
    write(path, &token)?;
    tracing::info!(path = %path.display(), "made the sync token that gateways on other machines need");
    Ok(token)
}

/// Keeps a token: a side file, complete before it takes the name.
fn write(path: &Path, token: &str) -> io::Result<()> {
    let side: PathBuf = path.with_extension(format!("{}.new", std::process::id()));
    let written = (|| {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&side)?;
        writeln!(file, "{token}")?;
        file.sync_all()?;
        fs::rename(&side, path)
    })();
    if written.is_err() {
        drop(fs::remove_file(&side));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kept").join("sync-token");
        let first = SyncToken::open(None, &path).unwrap();
        let again = SyncToken::open(Some("  "), &path).unwrap();
        assert!(again.is(first.0.as_bytes()) && first.0.len() == 43);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        SyncToken::open(None, &path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_the_whole_token_counts_and_a_configured_one_wins() {
        let dir = tempfile::tempdir().unwrap();
        let token = SyncToken::open(Some(" secret\n"), &dir.path().join("sync-token")).unwrap();
        assert!(token.is(b"secret"));
        for wrong in [&b"secre"[..], b"secret ", b"Secret", b""] {
            assert!(!token.is(wrong), "{wrong:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(format!("{token:?}"), "SyncToken");
    }

    #[test]
    fn an_empty_file_is_filled_and_an_impossible_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sync-token");
        fs::write(&path, "\n").unwrap();
        assert_eq!(SyncToken::open(None, &path).unwrap().0.len(), 43);
        let error = SyncToken::open(None, &path.join("below")).unwrap_err();
        assert!(format!("{error:#}").contains("sync-token/below"), "{error:#}");
    }
}
