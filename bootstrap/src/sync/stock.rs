//! A session with a stock admin.
//!
//! The admin answers the messages of a session in order, so the answer to a second `RUNNING_MODE`
//! behind `MYSELF` marks the end of the sequence, empty groups included. What was collected until
//! then is put in force in one step; what comes after are changes.
//!
//! A stock admin may cut its sequence short without a word, so a group that comes out empty but held
//! data is emptied only when a second sequence agrees; and a selector without an upstream frame keeps
//! its upstreams.

use std::collections::HashSet;
use std::time::Duration;

use longmen_core::snapshot::{ConfigState, Position};
use longmen_core::sync::{
    BadObject, Frame, FrameError, Group, Inbound, MYSELF, RUNNING_MODE, RunningMode,
    RunningModeKind, decode_each,
};
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::Applier;
use super::master::Peer;
use super::session::{Session, SessionError};

/// How long the whole sequence may take.
const REFRESH: Duration = Duration::from_secs(60);

/// Runs the session until it ends or the master check asks for its end. Returns the reason.
pub(super) async fn run(session: &mut Session, applier: &Applier, peer: &Peer) -> SessionError {
    match serve(session, applier, peer).await {
        Ok(()) => SessionError::Closed,
        Err(error) => error,
    }
}

/// Where the session stands in the sequence it asked for.
struct Sequence {
    /// Answers to `RUNNING_MODE` still to come before the end mark; the mark is the last of them.
    answers_left: u32,
    frames: Vec<Frame>,
    /// Runs from the first answer on: an admin that answers nothing is the master check's business.
    deadline: Option<Instant>,
    /// Objects that could not be read, by group and id: what was known of them stays.
    unreadable: Vec<(Group, Option<String>)>,
    /// Groups that an earlier sequence of this session left empty although they held data.
    doubted: HashSet<Group>,
}

async fn serve(session: &mut Session, applier: &Applier, peer: &Peer) -> Result<(), SessionError> {
    session.send(RUNNING_MODE).await?;
    let mut sequence = Some(ask(session, 2, HashSet::new()).await?);
    loop {
        let text = tokio::select! {
            text = next(session, sequence.as_ref()) => text?,
            () = peer.told_to_leave() => return Ok(()),
        };
        let (inbound, bad) = match decode_each(&text) {
            Ok(read) => read,
            Err(FrameError::Data { group, source }) => {
                warn!(%group, "frame dropped, what was known of its group stays: {source}");
                if let Some(sequence) = &mut sequence {
                    sequence.unreadable.push((group, None));
                }
                continue;
            }
            Err(error) => {
                warn!("frame dropped: {error}");
                continue;
            }
        };
        for BadObject { group, id, source } in bad {
            warn!(%group, id, "object dropped, what was known of it stays: {source}");
            if let Some(sequence) = &mut sequence {
                sequence.unreadable.push((group, id));
            }
        }
        match inbound {
            Inbound::RunningMode(mode) => {
                peer.says(&mode);
                sequence = answered(session, applier, sequence, &mode).await?;
            }
            Inbound::Data(frame) => match &mut sequence {
                Some(sequence) => sequence.frames.push(frame),
                None => {
                    applier.change(vec![frame], Position::default()).await;
                }
            },
            Inbound::Mark(_) | Inbound::Ignored(_) => {}
        }
    }
}

async fn ask(
    session: &mut Session,
    answers_left: u32,
    doubted: HashSet<Group>,
) -> Result<Sequence, SessionError> {
    session.send(MYSELF).await?;
    session.send(RUNNING_MODE).await?;
    // A sequence that is asked for again follows an answer.
    let deadline = (answers_left == 1).then(|| Instant::now() + REFRESH);
    let (frames, unreadable) = (Vec::new(), Vec::new());
    Ok(Sequence { answers_left, frames, deadline, unreadable, doubted })
}

async fn next(session: &mut Session, sequence: Option<&Sequence>) -> Result<String, SessionError> {
    match sequence.and_then(|sequence| sequence.deadline) {
        None => session.next().await,
        Some(deadline) => match timeout_at(deadline, session.next()).await {
            Ok(text) => text,
            Err(_) => Err(SessionError::NoRefresh(REFRESH)),
        },
    }
}

/// Takes one answer to `RUNNING_MODE`; returns the sequence that is still open, if any.
async fn answered(
    session: &mut Session,
    applier: &Applier,
    sequence: Option<Sequence>,
    mode: &RunningMode,
) -> Result<Option<Sequence>, SessionError> {
    let Some(mut sequence) = sequence else { return Ok(None) };
    sequence.answers_left = sequence.answers_left.saturating_sub(1);
    if sequence.answers_left > 0 {
        sequence.deadline = Some(Instant::now() + REFRESH);
        return Ok(Some(sequence));
    }
    if mode.running_mode == RunningModeKind::Cluster && !mode.is_master {
        // It answers, but does not send: nothing here may count as empty.
        return Ok(None);
    }
    let arrived: HashSet<Group> = sequence
        .frames
        .iter()
        .filter(|f| !f.payload.is_empty())
        .map(|f| f.payload.group())
        .collect();
    let emptied: HashSet<Group> = applier.filled().await.difference(&arrived).copied().collect();
    let doubtful: HashSet<Group> = emptied.difference(&sequence.doubted).copied().collect();
    let frames = std::mem::take(&mut sequence.frames);
    let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
    let mut kept: Vec<(Group, Option<String>)> = std::mem::take(&mut sequence.unreadable);
    kept.extend(doubtful.iter().map(|group| (*group, None)));
    let keep = move |old: &ConfigState, new: &mut ConfigState| carry_over(old, new, &kept);
    applier.replace(frames, Position::default(), true, keep).await;
    if doubtful.is_empty() {
        info!(objects, "full refresh in force");
        return Ok(None);
    }
    warn!(groups = ?doubtful, "groups came back empty: asking again before they are emptied");
    Ok(Some(ask(session, 1, emptied).await?))
}

/// What a stock admin's sequence does not say: what could not be read and groups in doubt stay, and a
/// selector that is still there without an upstream frame keeps its upstreams.
fn carry_over(old: &ConfigState, new: &mut ConfigState, kept: &[(Group, Option<String>)]) {
    for (group, id) in kept {
        new.keep(old, *group, id.as_deref());
    }
    for (selector, upstreams) in &old.upstreams {
        let there = new.selectors.values().any(|of_plugin| of_plugin.contains_key(selector));
        if there && !new.upstreams.contains_key(selector) {
            new.upstreams.insert(selector.clone(), upstreams.clone());
        }
    }
}
