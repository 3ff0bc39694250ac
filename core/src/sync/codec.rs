//! Text of frames.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ClientMessage, Event, Frame, Group, Mark, Payload, RunningMode};

/// What a gateway can receive.
#[derive(Debug, Clone, PartialEq)]
pub enum Inbound {
    /// Objects.
    Data(Frame),
    /// The running mode of the admin.
    RunningMode(RunningMode),
    /// Our mark without data: the end of a full refresh, or an empty change set.
    Mark(Mark),
    /// Valid, but nothing for this build; why.
    Ignored(&'static str),
}

/// Why a text is not a frame. The frame is lost, the connection stays.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Not JSON at all.
    #[error("sync frame is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// Something else than an object.
    #[error("sync frame is not a JSON object")]
    NotAnObject,
    /// A member has a type that its reader refuses.
    #[error("{group} frame: {source}")]
    Data {
        /// The group named by the frame.
        group: Group,
        /// Which member, and what was expected.
        #[source]
        source: serde_json::Error,
    },
    /// A running-mode object that cannot be read.
    #[error("running mode: {0}")]
    RunningMode(#[source] serde_json::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    group_type: Option<String>,
    #[serde(default)]
    event_type: Option<String>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default)]
    longmen: Option<serde_json::Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outgoing<'a> {
    group_type: Group,
    event_type: Event,
    data: &'a Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    longmen: Option<&'a Mark>,
}

/// Reads one text message from an admin.
///
/// Unknown groups and events, absent or null `data`, and anything without a group are
/// [`Inbound::Ignored`], as the reference does. An empty `data` list of a known group is data: it
/// has no effect by itself, but its mark counts.
///
/// # Errors
/// Text that is no JSON object, or an object with a member of a refused type; the caller drops the
/// message and goes on.
///
/// Source: ShenYu 2.7.1, reader rules executed on a stock gateway.
pub fn decode(text: &str) -> Result<Inbound, FrameError> {
    if !text.trim_start().starts_with('{') {
        // A derived reader takes an array for a struct, member by member.
        return Err(FrameError::NotAnObject);
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(FrameError::NotJson)?;
    let mark = envelope.longmen.and_then(|value| serde_json::from_value::<Mark>(value).ok());
    if envelope.event_type.as_deref() == Some(Event::RunningMode.name()) {
        let mode = serde_json::from_str(text).map_err(FrameError::RunningMode)?;
        return Ok(Inbound::RunningMode(mode));
    }
    let Some(group_name) = envelope.group_type else {
        return Ok(mark.map_or(Inbound::Ignored("no groupType"), Inbound::Mark));
    };
    let Some(group) = Group::from_name(&group_name) else {
        return Ok(Inbound::Ignored("unknown groupType"));
    };
    let Some(event) = envelope.event_type.as_deref().and_then(Event::from_name) else {
        return Ok(Inbound::Ignored("unknown eventType"));
    };
    let Some(raw) = envelope.data.filter(|raw| raw.get() != "null") else {
        return Ok(Inbound::Ignored("no data"));
    };
    let payload = read_payload(group, raw).map_err(|source| FrameError::Data { group, source })?;
    Ok(Inbound::Data(Frame { event, payload, mark }))
}

fn read_payload(group: Group, raw: &RawValue) -> Result<Payload, serde_json::Error> {
    fn list<T: for<'de> Deserialize<'de>>(raw: &RawValue) -> Result<Vec<T>, serde_json::Error> {
        serde_json::from_str(raw.get())
    }
    Ok(match group {
        Group::AppAuth => Payload::AppAuth(list(raw)?),
        Group::Plugin => Payload::Plugin(list(raw)?),
        Group::Rule => Payload::Rule(list(raw)?),
        Group::Selector => Payload::Selector(list(raw)?),
        Group::MetaData => Payload::MetaData(list(raw)?),
        Group::ProxySelector => Payload::ProxySelector(list(raw)?),
        Group::AiProxyApiKey => Payload::AiProxyApiKey(list(raw)?),
        Group::DiscoverUpstream => Payload::DiscoverUpstream(list(raw)?),
    })
}

/// Writes one frame; compact, nulls left out. With `mark` only towards our own gateways.
#[must_use]
pub fn encode(frame: &Frame) -> String {
    let outgoing = Outgoing {
        group_type: frame.payload.group(),
        event_type: frame.event,
        data: &frame.payload,
        longmen: frame.mark.as_ref(),
    };
    serde_json::to_string(&outgoing).expect("frames hold only strings, numbers and lists")
}

#[derive(Serialize, Deserialize)]
struct Wrapped<T> {
    longmen: T,
}

impl Mark {
    /// The text of a mark without data.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(&Wrapped { longmen: self }).expect("a mark is plain data")
    }
}

impl ClientMessage {
    /// The text a gateway sends.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(&Wrapped { longmen: self }).expect("a message is plain data")
    }

    /// Reads what a gateway sent; `None` when it is not one of our messages.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str::<Wrapped<Self>>(text).ok().map(|wrapped| wrapped.longmen)
    }
}
