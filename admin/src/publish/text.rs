//! Assembly of frame texts from objects that are already JSON.
//!
//! Equal to [`longmen_core::sync::encode`] byte for byte (a test holds the two together), but the
//! objects are written once for both dialects and a list can be cut at a size limit.

use axum::extract::ws::Utf8Bytes;
use longmen_core::sync::{Event, Group, Mark};

/// The largest frame towards our own gateways, in bytes, if it holds more than one object.
pub(super) const CHUNK_BYTES: usize = 1024 * 1024;

/// What a mark adds to a frame at most, in bytes: epochs are at most 128 bytes.
const MARK_BYTES: usize = 256;

/// Joins objects to frames.
///
/// Frames come out in the order in which objects went in. No frame is empty; one that holds
/// several objects is at most `limit` bytes, a single object of any size has a frame of its own.
#[derive(Debug)]
pub(super) struct FrameWriter {
    limit: usize,
    /// Texts that lack their end: `{"groupType":…,"data":[…,…`.
    frames: Vec<String>,
    /// What the last of `frames` holds, while it may take more.
    open: Option<(Group, Event)>,
}

impl FrameWriter {
    /// A writer for stock gateways: no limit, they know no chunks of a change.
    pub(super) const fn stock() -> Self {
        Self { limit: usize::MAX, frames: Vec::new(), open: None }
    }

    /// A writer for our own gateways: [`CHUNK_BYTES`].
    pub(super) const fn ours() -> Self {
        Self { limit: CHUNK_BYTES - MARK_BYTES, frames: Vec::new(), open: None }
    }

    /// Adds one object, to the frame before it if that has the same group and event.
    pub(super) fn join(&mut self, group: Group, event: Event, object: &str) {
        if self.open == Some((group, event))
            && let Some(frame) = self.frames.last_mut()
            && frame.len().saturating_add(object.len()) < self.limit
        {
            frame.push(',');
            frame.push_str(object);
            return;
        }
        self.begin(group, event, object);
        self.open = Some((group, event));
    }

    /// Adds one object in a frame of its own.
    pub(super) fn alone(&mut self, group: Group, event: Event, object: &str) {
        self.begin(group, event, object);
        self.open = None;
    }

    fn begin(&mut self, group: Group, event: Event, object: &str) {
        let (group, event) = (group.name(), event.name());
        let mut text = String::with_capacity(object.len() + 128);
        text.push_str("{\"groupType\":\"");
        text.push_str(group);
        text.push_str("\",\"eventType\":\"");
        text.push_str(event);
        text.push_str("\",\"data\":[");
        text.push_str(object);
        self.frames.push(text);
    }

    /// The frames as a stock gateway reads them.
    pub(super) fn plain(self) -> Vec<Utf8Bytes> {
        self.frames.into_iter().map(|frame| close(frame, "]}")).collect()
    }

    /// The frames of a change set: each marked, the last one as the last. Without an object the
    /// mark alone, so that the version moves on.
    pub(super) fn change_set(self, epoch: &str, version: u64) -> Vec<Utf8Bytes> {
        let mark = Mark { epoch: epoch.to_owned(), version, last: false, refresh: false };
        let last = Mark { last: true, ..mark.clone() };
        if self.frames.is_empty() {
            return vec![last.to_text().into()];
        }
        let (tail, last_tail) = (marked_tail(&mark), marked_tail(&last));
        let count = self.frames.len();
        let numbered = self.frames.into_iter().enumerate();
        numbered
            .map(|(index, frame)| close(frame, if index + 1 == count { &last_tail } else { &tail }))
            .collect()
    }

    /// The frames of a full refresh, and the mark that ends it.
    pub(super) fn refresh(self, epoch: &str, version: u64) -> Vec<Utf8Bytes> {
        let mark = Mark { epoch: epoch.to_owned(), version, last: false, refresh: true };
        let tail = marked_tail(&mark);
        let end = Mark { last: true, ..mark };
        let frames = self.frames.into_iter().map(|frame| close(frame, &tail));
        frames.chain(std::iter::once(end.to_text().into())).collect()
    }
}

fn close(mut frame: String, tail: &str) -> Utf8Bytes {
    frame.push_str(tail);
    frame.into()
}

/// `],"longmen":{…}}`: a mark's own text opens with a brace that is not wanted here.
fn marked_tail(mark: &Mark) -> String {
    format!("],{}", &mark.to_text()[1..])
}

#[cfg(test)]
mod tests {
    use longmen_core::model::Plugin;
    use longmen_core::sync::{Frame, Inbound, Payload, decode, encode};

    use super::*;

    fn plugin(name: &str) -> Plugin {
        Plugin { name: name.into(), id: "5".into(), ..Plugin::default() }
    }

    fn json(plugin: &Plugin) -> String {
        serde_json::to_string(plugin).unwrap()
    }

    #[test]
    fn texts_are_those_of_the_codec() {
        let plugins = vec![plugin("divide"), plugin("waf")];
        let mut stock = FrameWriter::stock();
        let mut ours = FrameWriter::ours();
        for plugin in &plugins {
            stock.join(Group::Plugin, Event::Update, &json(plugin));
            ours.join(Group::Plugin, Event::Update, &json(plugin));
        }
        let mut frame =
            Frame { event: Event::Update, payload: Payload::Plugin(plugins), mark: None };
        assert_eq!(stock.plain()[0].as_str(), encode(&frame));
        frame.mark = Some(Mark { epoch: "e\"".into(), version: 7, last: true, refresh: false });
        assert_eq!(ours.change_set("e\"", 7)[0].as_str(), encode(&frame));
    }

    #[test]
    fn only_the_same_group_and_event_joins_and_alone_stays_alone() {
        let mut writer = FrameWriter::stock();
        writer.join(Group::Plugin, Event::Update, "1");
        writer.join(Group::Plugin, Event::Update, "2");
        writer.join(Group::Plugin, Event::Delete, "3");
        writer.alone(Group::Plugin, Event::Delete, "4");
        writer.join(Group::Plugin, Event::Delete, "5");
        let texts = writer.plain();
        let lists: Vec<&str> =
            texts.iter().map(|text| text.split_once("\"data\":").unwrap().1).collect();
        assert_eq!(lists, ["[1,2]}", "[3]}", "[4]}", "[5]}"]);
    }

    #[test]
    fn a_change_set_marks_its_last_frame_and_an_empty_one_is_a_mark() {
        let mut writer = FrameWriter::ours();
        writer.join(Group::Plugin, Event::Update, "{}");
        writer.join(Group::Rule, Event::Update, "{}");
        let texts = writer.change_set("e", 3);
        let last: Vec<bool> = texts
            .iter()
            .map(|text| match decode(text).unwrap() {
                Inbound::Data(frame) => frame.mark.unwrap().last,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(last, [false, true]);
        let empty = FrameWriter::ours().change_set("e", 4);
        let mark = Mark { epoch: "e".into(), version: 4, last: true, refresh: false };
        assert_eq!(decode(&empty[0]).unwrap(), Inbound::Mark(mark));
    }

    #[test]
    fn a_refresh_is_cut_into_chunks_and_ends_with_a_bare_mark() {
        let object = format!("{{\"id\":\"{}\"}}", "x".repeat(300 * 1024));
        let huge = format!("{{\"id\":\"{}\"}}", "y".repeat(2 * CHUNK_BYTES));
        let mut writer = FrameWriter::ours();
        for _ in 0..7 {
            writer.join(Group::Rule, Event::Myself, &object);
        }
        writer.join(Group::Rule, Event::Myself, &huge);
        let texts = writer.refresh(&"e".repeat(128), u64::MAX);
        let mut objects = Vec::new();
        for text in &texts[..texts.len() - 1] {
            let Inbound::Data(frame) = decode(text).unwrap() else { panic!("no data") };
            assert!(frame.mark.unwrap().refresh);
            assert!(text.len() <= CHUNK_BYTES || frame.payload.len() == 1);
            objects.push(frame.payload.len());
        }
        assert_eq!(objects, [3, 3, 1, 1]);
        let Inbound::Mark(end) = decode(&texts[4]).unwrap() else { panic!("no mark") };
        assert!(end.last && end.refresh);
    }
}
