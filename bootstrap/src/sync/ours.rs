//! A session with one of our own admins: resume, change sets, full refreshes, acknowledgements.

use std::time::Duration;

use longmen_core::snapshot::{Position, Published};
use longmen_core::sync::{ClientMessage, Frame, Inbound, Mark, decode};
use tokio::time::timeout;
use tracing::info;

use super::Applier;
use super::session::{Session, SessionError};

/// Runs the session until it ends. Returns only with the reason.
pub(super) async fn run(session: &mut Session, applier: &Applier, limit: Duration) -> SessionError {
    match serve(session, applier, limit).await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

enum Never {}

/// An admin that answers nothing, or stops in the middle of a change set, is left after `limit`: another
/// one may have what this gateway waits for.
async fn serve(
    session: &mut Session,
    applier: &Applier,
    limit: Duration,
) -> Result<Never, SessionError> {
    let Position { epoch, version } = applier.position().await;
    session.send(ClientMessage::Resume { epoch, version }.to_text()).await?;
    let mut collected: Vec<Frame> = Vec::new();
    let mut awaited = true;
    loop {
        let text = if awaited {
            let next = timeout(limit, session.next()).await;
            next.unwrap_or(Err(SessionError::NoRefresh(limit)))?
        } else {
            session.next().await?
        };
        let (frame, mark) = match decode(&text) {
            Ok(Inbound::Data(mut frame)) => match frame.mark.take() {
                Some(mark) => (Some(frame), mark),
                None => return Err(SessionError::Protocol("a frame without its mark".into())),
            },
            Ok(Inbound::Mark(mark)) => (None, mark),
            Ok(Inbound::RunningMode(_) | Inbound::Ignored(_)) => continue,
            // Between our own parts a frame that cannot be read means that something would be
            // missing: begin again rather than go on without it.
            Err(error) => return Err(SessionError::Protocol(error.to_string())),
        };
        collected.extend(frame);
        awaited = !mark.last;
        if awaited {
            continue;
        }
        let frames = std::mem::take(&mut collected);
        let Mark { epoch, version, refresh, .. } = mark;
        let position = Position { epoch, version };
        let published = if refresh {
            let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
            let published = applier.replace(frames, position, true, |_, _| {}).await;
            info!(version, objects, "full refresh in force");
            published
        } else {
            applier.change(frames, position).await
        };
        acknowledge(session, published).await?;
    }
}

async fn acknowledge(session: &mut Session, published: Published) -> Result<(), SessionError> {
    let Published { position, faults } = published;
    let ack = ClientMessage::Ack { epoch: position.epoch, version: position.version, faults };
    session.send(ack.to_text()).await
}
