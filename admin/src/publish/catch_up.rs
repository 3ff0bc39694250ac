//! The change sets that a gateway of ours missed.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use longmen_core::sync::Mark;
use longmen_db::{Error, Since, Store, current_version, epoch, renew_epoch_from, since};

use super::changes;
use super::hub::Part;

/// Rows that are read at a time.
const ROWS: u32 = 5_000;

/// What a gateway needs to be up to date.
#[derive(Debug)]
pub(super) enum CatchUp {
    /// These frames.
    Frames {
        /// The frames, in order; a mark alone when nothing is missing, so that the gateway knows.
        frames: Vec<Utf8Bytes>,
        /// The version it then stands at.
        version: u64,
        /// Whether that is all there is.
        complete: bool,
    },
    /// Everything: it never had anything, it counts in another epoch, or what it missed is no longer
    /// in the dispatch view.
    Refresh,
    /// Everything, in this epoch, which was begun because it is ahead of the table: the database is
    /// older than it was. Others hold versions of what is lost too, which say nothing any more.
    Anew(Arc<str>),
}

/// Reads what follows `version`, at most a few thousand rows and a few MiB at a time.
///
/// # Errors
/// The database's.
pub(super) async fn catch_up(
    store: &Store,
    namespace: &str,
    in_epoch: &str,
    version: u64,
) -> anyhow::Result<CatchUp> {
    if version == 0 || in_epoch.is_empty() {
        return Ok(CatchUp::Refresh);
    }
    let mut tx = store.read().await?;
    if epoch(&mut tx).await? != in_epoch {
        return Ok(CatchUp::Refresh);
    }
    let head = current_version(&mut tx, namespace).await?;
    if version > head {
        drop(tx);
        tracing::error!(
            namespace,
            version,
            stored = head,
            "the database is older than what a gateway has of it, versions will count anew"
        );
        let renewed = renew_epoch_from(store, in_epoch).await?;
        return Ok(CatchUp::Anew(renewed.into()));
    }
    let sets = match since(&mut tx, namespace, version, ROWS).await {
        Ok(Since::Sets(sets)) => sets,
        Ok(Since::Gap) => return Ok(CatchUp::Refresh),
        Err(error @ Error::Corrupt { .. }) => {
            tracing::error!(namespace, version, %error, "a gateway gets everything instead");
            return Ok(CatchUp::Refresh);
        }
        Err(error) => return Err(error.into()),
    };
    drop(tx);
    let Some(last) = sets.last() else {
        let mark = Mark { epoch: in_epoch.to_owned(), version, last: true, refresh: false };
        return Ok(CatchUp::Frames {
            frames: vec![mark.to_text().into()],
            version,
            complete: true,
        });
    };
    let reached = last.version;
    let mut frames = Vec::new();
    for set in &sets {
        let (parts, faults) = changes::ours(namespace, in_epoch, set.version, &set.rows);
        for fault in faults {
            tracing::error!(namespace, version = set.version, %fault, "unreadable change");
        }
        for part in parts {
            match part {
                Part::Frames(of_set) => frames.extend(of_set),
                Part::Refresh(_) => return Ok(CatchUp::Refresh),
            }
        }
    }
    Ok(CatchUp::Frames { frames, version: reached, complete: reached == head })
}
