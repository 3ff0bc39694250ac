//! One websocket session of a gateway.
//!
//! A session is one task with two halves: reading what the gateway asks, and writing. Everything
//! that is written passes through one place, in order, so an answer never overtakes a change.

mod info;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use longmen_core::sync::{ClientMessage, MYSELF, RUNNING_MODE};
use longmen_db::repository::instance::InstanceKey;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite;

use self::info::{Info, instance_info};
use super::Shared;
use super::catch_up::{CatchUp, catch_up};
use super::hub::{Delivery, Dialect, Ending, Inbox, Part};
use super::refreshes::{Kind, Rendered};
use crate::instances::BOOTSTRAP;

/// Requests of a gateway that wait for their turn; a gateway that asks faster is read slower.
const COMMANDS: usize = 16;

/// How long the peer may take nothing, and how much longer per 64 KiB to be taken.
const STALL: Duration = Duration::from_secs(20);
const STALL_BYTES_PER_SECOND: usize = 64 * 1024;

/// How often our gateways are pinged, and after which silence they are given up. Stock gateways
/// ping by themselves and a stock admin never does: for them the configured silence counts.
const PING_EVERY: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_secs(50);

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the answer to a stock gateway waits for the dispatcher to reach its version.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);

/// What a gateway asks for.
#[derive(Debug)]
enum Command {
    /// Whether this admin is the one to listen to.
    RunningMode,
    /// Everything.
    Everything,
    /// What it missed.
    Resume { epoch: String, version: u64 },
}

/// The gateway at the other end.
#[derive(Debug)]
pub(super) struct Who {
    /// The namespace it serves.
    pub(super) namespace: String,
    /// Its host.
    pub(super) host: String,
    /// The port it serves on, if it said so.
    pub(super) port: Option<u16>,
}

/// Serves one session until it ends.
pub(super) async fn run(
    shared: Arc<Shared>,
    inbox: Inbox,
    who: Who,
    dialect: Dialect,
    socket: WebSocket,
) {
    let (sink, mut stream) = socket.split();
    let (sender, commands) = mpsc::channel(COMMANDS);
    let (id, ending) = (inbox.id, inbox.ending());
    let silence = match dialect {
        Dialect::Stock => shared.config.websocket.silence,
        Dialect::Ours => SILENCE,
    };
    let namespace = who.namespace.clone();
    let reader = Reader { shared: Arc::clone(&shared), id, who, dialect, commands: sender };
    let heard = Heard::new();
    let mut writer = Writer { shared, inbox, namespace, dialect, stand: None, sink, unflushed: 0 };
    let ended = tokio::select! {
        biased;
        ending = ending => ending,
        ending = reader.read(&mut stream, &heard) => ending,
        ending = writer.work(commands) => ending,
        () = heard.nothing_for(silence) => Ending::Silent,
    };
    tracing::debug!(session = id, reason = ?ended, "sync session ends");
    writer.say_goodbye(ended, stream).await;
}

/// When the peer was last heard, in milliseconds since the session began.
#[derive(Debug)]
struct Heard {
    begin: Instant,
    at_ms: AtomicU64,
}

impl Heard {
    fn new() -> Self {
        Self { begin: Instant::now(), at_ms: AtomicU64::new(0) }
    }

    fn now(&self) {
        let elapsed = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Waits until nothing has been heard for `limit`: the peer, or the way to it, is gone.
    async fn nothing_for(&self, limit: Duration) {
        loop {
            let at = Duration::from_millis(self.at_ms.load(Ordering::Relaxed));
            let over = self.begin + at + limit;
            if over <= Instant::now() {
                return;
            }
            sleep_until(over).await;
        }
    }
}

/// The half that listens.
struct Reader {
    shared: Arc<Shared>,
    id: u64,
    who: Who,
    dialect: Dialect,
    commands: mpsc::Sender<Command>,
}

impl Reader {
    async fn read(&self, stream: &mut SplitStream<WebSocket>, heard: &Heard) -> Ending {
        while let Some(message) = stream.next().await {
            heard.now();
            let command = match message {
                Ok(Message::Text(text)) => self.understand(&text),
                Ok(Message::Close(_)) => return Ending::Gone,
                // A PING is answered by the socket itself.
                Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_)) => None,
                Err(error) => return ending_of(error),
            };
            if let Some(command) = command
                && self.commands.send(command).await.is_err()
            {
                return Ending::Gone;
            }
        }
        Ending::Gone
    }

    /// What a text asks for; reports and acknowledgements are taken note of here.
    ///
    /// Source: ShenYu 2.7.1, as executed: the two words exactly, a report by its member's name,
    /// everything else is ignored.
    fn understand(&self, text: &str) -> Option<Command> {
        match text {
            RUNNING_MODE => return Some(Command::RunningMode),
            MYSELF => return Some(Command::Everything),
            _ => {}
        }
        let now_ms = self.shared.store.now_ms();
        if self.dialect == Dialect::Ours
            && let Some(message) = ClientMessage::from_text(text)
        {
            return match message {
                ClientMessage::Resume { epoch, version } => {
                    Some(Command::Resume { epoch, version })
                }
                ClientMessage::Ack { epoch, version, faults } => {
                    self.shared.gateways.acknowledged(self.id, epoch, version, faults, now_ms);
                    None
                }
            };
        }
        if let Some(info) = instance_info(text) {
            let Info { text, as_stored } = info;
            self.shared.gateways.reported(self.id, text, now_ms);
            // As the reference, which leaves out a gateway that does not say where it serves.
            if let Some(port) = self.who.port.filter(|port| *port != 0) {
                let key = InstanceKey {
                    namespace_id: self.who.namespace.clone(),
                    ip: self.who.host.clone(),
                    port: port.to_string(),
                    kind: BOOTSTRAP.to_owned(),
                };
                self.shared.instances.beat(key, as_stored);
            }
        }
        None
    }
}

fn ending_of(error: axum::Error) -> Ending {
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => Ending::TooBig,
        _ => Ending::Gone,
    }
}

/// The half that speaks.
struct Writer {
    shared: Arc<Shared>,
    inbox: Inbox,
    namespace: String,
    dialect: Dialect,
    /// What one of our gateways has been sent, once it has said where it stands.
    stand: Option<(Arc<str>, u64)>,
    sink: SplitSink<WebSocket, Message>,
    unflushed: usize,
}

impl Writer {
    async fn work(&mut self, commands: mpsc::Receiver<Command>) -> Ending {
        match self.try_work(commands).await {
            Ok(never) => match never {},
            Err(ending) => ending,
        }
    }

    async fn try_work(
        &mut self,
        mut commands: mpsc::Receiver<Command>,
    ) -> Result<std::convert::Infallible, Ending> {
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                delivery = self.inbox.next() => self.deliver(&delivery).await?,
                command = commands.recv() => {
                    self.obey(command.ok_or(Ending::Gone)?).await?;
                }
                _ = pings.tick(), if self.dialect == Dialect::Ours => {
                    self.feed(Message::Ping(bytes::Bytes::new())).await?;
                }
            }
            // What has piled up meanwhile leaves in the same write.
            self.drain().await?;
            self.flush().await?;
        }
    }

    /// Sends what waits now.
    async fn drain(&mut self) -> Result<(), Ending> {
        for _ in 0..self.inbox.waiting() {
            if let Some(delivery) = self.inbox.try_next() {
                self.deliver(&delivery).await?;
            }
        }
        Ok(())
    }

    /// Does what the gateway asks, after everything that was delivered before it asked: an answer
    /// about the running mode marks a place among the changes.
    async fn obey(&mut self, command: Command) -> Result<(), Ending> {
        self.drain().await?;
        match (command, self.dialect) {
            (Command::RunningMode, _) => {
                self.feed(Message::Text(self.shared.running_mode.clone())).await
            }
            (Command::Everything, Dialect::Stock) => self.answer_myself().await,
            (Command::Everything, Dialect::Ours) => self.refresh_ours(None).await,
            (Command::Resume { epoch, version }, _) => self.resume(epoch.into(), version).await,
        }
    }

    /// Sends one delivery, unless the peer has it already.
    async fn deliver(&mut self, delivery: &Delivery) -> Result<(), Ending> {
        match self.dialect {
            Dialect::Stock => {
                for part in &delivery.parts {
                    match part {
                        Part::Frames(frames) => self.feed_all(frames).await?,
                        Part::Refresh(kind) => {
                            let (epoch, floor) = (&delivery.epoch, delivery.version);
                            let rendered = self.rendered(kind, epoch, floor).await?;
                            self.feed_all(&rendered.frames).await?;
                        }
                    }
                }
                Ok(())
            }
            Dialect::Ours => self.deliver_ours(delivery).await,
        }
    }

    async fn deliver_ours(&mut self, delivery: &Delivery) -> Result<(), Ending> {
        // A gateway that has not said where it stands gets everything when it does.
        let Some((epoch, version)) = self.stand.clone() else { return Ok(()) };
        let known = delivery.version <= version;
        if epoch == delivery.epoch && known || epoch != delivery.epoch && !delivery.resync {
            return Ok(());
        }
        if !delivery.resync && delivery.version > version + 1 {
            // Versions have no gaps, so something was not put into the queue: the table has it.
            return self.resume(epoch, version).await;
        }
        for part in &delivery.parts {
            match part {
                Part::Frames(frames) => {
                    self.feed_all(frames).await?;
                    self.stand = Some((Arc::clone(&delivery.epoch), delivery.version));
                }
                Part::Refresh(_) => self.refresh_ours(Some(delivery)).await?,
            }
        }
        Ok(())
    }

    /// Answers a stock gateway: the changes up to the version of the answer come before it, so that
    /// nothing it removes comes back, and all later ones after it.
    async fn answer_myself(&mut self) -> Result<(), Ending> {
        let (epoch, floor) = self.since_when(None);
        let rendered = self.rendered(&Kind::Myself, &epoch, floor).await?;
        if self.shared.hub.floor(&self.namespace) < rendered.version {
            self.shared.poke.notify_one();
        }
        let reached = self.shared.hub.reached(&self.namespace, rendered.version);
        if timeout(CATCH_UP_WAIT, reached).await.is_err() {
            tracing::warn!(
                namespace = self.namespace,
                version = rendered.version,
                "answering a gateway ahead of changes that are still to be sent"
            );
        }
        let mut later = None;
        while later.is_none() {
            match self.inbox.try_next() {
                Some(delivery) if delivery.version <= rendered.version => {
                    self.deliver(&delivery).await?;
                }
                Some(delivery) => later = Some(delivery),
                None => break,
            }
        }
        self.feed_all(&rendered.frames).await?;
        match later {
            Some(delivery) => self.deliver(&delivery).await,
            None => Ok(()),
        }
    }

    /// Sends what follows a version of a gateway of ours, or everything.
    async fn resume(&mut self, epoch: Arc<str>, version: u64) -> Result<(), Ending> {
        let mut stand = (epoch, version);
        loop {
            let missing = catch_up(&self.shared.store, &self.namespace, &stand.0, stand.1);
            match self.shared.patience.query("what a gateway missed", missing).await {
                Ok(CatchUp::Frames { frames, version, complete }) => {
                    self.feed_all(&frames).await?;
                    stand.1 = version;
                    if complete {
                        self.stand = Some(stand);
                        return Ok(());
                    }
                }
                Ok(CatchUp::Refresh) => return self.refresh_ours(None).await,
                Ok(CatchUp::Anew(epoch)) => return self.refresh_in(&epoch, 0).await,
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    async fn refresh_ours(&mut self, cause: Option<&Delivery>) -> Result<(), Ending> {
        let (epoch, floor) = self.since_when(cause);
        self.refresh_in(&epoch, floor).await
    }

    async fn refresh_in(&mut self, epoch: &str, floor: u64) -> Result<(), Ending> {
        let rendered = self.rendered(&Kind::Ours, epoch, floor).await?;
        self.feed_all(&rendered.frames).await?;
        self.stand = Some((Arc::clone(&rendered.epoch), rendered.version));
        Ok(())
    }

    /// The epoch and the least version of a state that answers a delivery, or the gateway itself.
    fn since_when(&self, cause: Option<&Delivery>) -> (Arc<str>, u64) {
        match cause {
            Some(delivery) => (Arc::clone(&delivery.epoch), delivery.version),
            None => (self.shared.hub.epoch(), self.shared.hub.floor(&self.namespace)),
        }
    }

    async fn rendered(
        &self,
        kind: &Kind,
        epoch: &str,
        floor: u64,
    ) -> Result<Arc<Rendered>, Ending> {
        let rendered = self.shared.refreshes.get(&self.namespace, kind, epoch, floor).await;
        rendered.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &anyhow::Error) -> Ending {
        tracing::error!(
            namespace = self.namespace,
            error = format!("{error:#}"),
            "a gateway's answer could not be read from the store, it will ask again"
        );
        Ending::Failed
    }

    async fn feed_all(&mut self, frames: &[Utf8Bytes]) -> Result<(), Ending> {
        for frame in frames {
            self.feed(Message::Text(frame.clone())).await?;
        }
        Ok(())
    }

    async fn feed(&mut self, message: Message) -> Result<(), Ending> {
        let bytes = match &message {
            Message::Text(text) => text.len(),
            _ => 0,
        };
        let sent = timeout(patience(self.unflushed), self.sink.feed(message)).await;
        self.unflushed = self.unflushed.saturating_add(bytes);
        taken(sent)
    }

    async fn flush(&mut self) -> Result<(), Ending> {
        let flushed = timeout(patience(self.unflushed), self.sink.flush()).await;
        self.unflushed = 0;
        taken(flushed)
    }

    /// Tells the peer why, and waits a moment for its answer so that the text is not lost.
    async fn say_goodbye(mut self, ending: Ending, mut stream: SplitStream<WebSocket>) {
        let farewell = async {
            match close_frame(ending) {
                Some(frame) => self.sink.send(Message::Close(Some(frame))).await?,
                None => return self.sink.close().await,
            }
            while let Some(Ok(message)) = stream.next().await {
                if matches!(message, Message::Close(_)) {
                    break;
                }
            }
            Ok(())
        };
        match timeout(FAREWELL, farewell).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::trace!(%error, "no farewell"),
            Err(_) => tracing::trace!("the peer did not answer the farewell"),
        }
    }
}

fn patience(bytes: usize) -> Duration {
    STALL + Duration::from_secs((bytes / STALL_BYTES_PER_SECOND) as u64)
}

fn taken(sent: Result<Result<(), axum::Error>, tokio::time::error::Elapsed>) -> Result<(), Ending> {
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Ending::Gone),
        Err(_) => Err(Ending::TooSlow),
    }
}

fn close_frame(ending: Ending) -> Option<CloseFrame> {
    let (code, reason) = match ending {
        Ending::Gone => return None,
        Ending::TooSlow => {
            (close_code::AGAIN, "changes wait longer than they may, ask for everything again")
        }
        Ending::TooBig => {
            (close_code::SIZE, "message is larger than shenyu.sync.websocket.messageMaxSize")
        }
        Ending::Silent => (close_code::AWAY, "nothing was heard for a while"),
        Ending::Failed => (close_code::ERROR, "the store does not answer"),
        Ending::Stopping => (close_code::AWAY, "admin stops"),
    };
    Some(CloseFrame { code, reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_have_the_codes_of_the_specification() {
        let code = |ending| close_frame(ending).map(|frame| frame.code);
        assert_eq!(code(Ending::TooSlow), Some(1013));
        assert_eq!(code(Ending::TooBig), Some(1009));
        assert_eq!(code(Ending::Stopping), Some(1001));
        assert_eq!(code(Ending::Gone), None);
        assert!(patience(0) < patience(1 << 20));
    }
}
