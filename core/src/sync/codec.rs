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

/// One object of a frame that cannot be read; the others of its frame can.
#[derive(Debug)]
pub struct BadObject {
    /// The group of its frame.
    pub group: Group,
    /// Its id, or of an upstream list the selector's; `None` where that cannot be read either.
    pub id: Option<String>,
    /// Which member, and what was expected.
    pub source: serde_json::Error,
}

/// Reads one text message from an admin, whole or not at all.
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
    let (inbound, bad) = decode_each(text)?;
    match bad.into_iter().next() {
        None => Ok(inbound),
        Some(BadObject { group, source, .. }) => Err(FrameError::Data { group, source }),
    }
}

/// Reads one text message from an admin object by object: what cannot be read is told beside the
/// rest.
///
/// # Errors
/// As [`decode`], but an object that cannot be read is none.
pub fn decode_each(text: &str) -> Result<(Inbound, Vec<BadObject>), FrameError> {
    let whole = |inbound| Ok((inbound, Vec::new()));
    if !text.trim_start().starts_with('{') {
        // A derived reader takes an array for a struct, member by member.
        return Err(FrameError::NotAnObject);
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(FrameError::NotJson)?;
    let mark = envelope.longmen.and_then(|value| serde_json::from_value::<Mark>(value).ok());
    if envelope.event_type.as_deref() == Some(Event::RunningMode.name()) {
        let mode = serde_json::from_str(text).map_err(FrameError::RunningMode)?;
        return whole(Inbound::RunningMode(mode));
    }
    let Some(group_name) = envelope.group_type else {
        return whole(mark.map_or(Inbound::Ignored("no groupType"), Inbound::Mark));
    };
    let Some(group) = Group::from_name(&group_name) else {
        return whole(Inbound::Ignored("unknown groupType"));
    };
    let Some(event) = envelope.event_type.as_deref().and_then(Event::from_name) else {
        return whole(Inbound::Ignored("unknown eventType"));
    };
    let Some(raw) = envelope.data.filter(|raw| raw.get() != "null") else {
        return whole(Inbound::Ignored("no data"));
    };
    let mut bad = Vec::new();
    let payload =
        read_payload(group, raw, &mut bad).map_err(|source| FrameError::Data { group, source })?;
    Ok((Inbound::Data(Frame { event, payload, mark }), bad))
}

/// Reads the objects of one group, a JSON list; those that cannot be read are told beside the rest.
///
/// # Errors
/// It is no list.
pub fn decode_group(
    group: Group,
    objects: &RawValue,
) -> Result<(Payload, Vec<BadObject>), serde_json::Error> {
    let mut bad = Vec::new();
    let payload = read_payload(group, objects, &mut bad)?;
    Ok((payload, bad))
}

fn read_payload(
    group: Group,
    raw: &RawValue,
    bad: &mut Vec<BadObject>,
) -> Result<Payload, serde_json::Error> {
    Ok(match group {
        Group::AppAuth => Payload::AppAuth(list(group, raw, bad)?),
        Group::Plugin => Payload::Plugin(list(group, raw, bad)?),
        Group::Rule => Payload::Rule(list(group, raw, bad)?),
        Group::Selector => Payload::Selector(list(group, raw, bad)?),
        Group::MetaData => Payload::MetaData(list(group, raw, bad)?),
        Group::ProxySelector => Payload::ProxySelector(list(group, raw, bad)?),
        Group::AiProxyApiKey => Payload::AiProxyApiKey(list(group, raw, bad)?),
        Group::DiscoverUpstream => Payload::DiscoverUpstream(list(group, raw, bad)?),
    })
}

/// Reads a list at once, and only where that fails object by object.
fn list<T: for<'de> Deserialize<'de>>(
    group: Group,
    raw: &RawValue,
    bad: &mut Vec<BadObject>,
) -> Result<Vec<T>, serde_json::Error> {
    let failed = match serde_json::from_str(raw.get()) {
        Ok(objects) => return Ok(objects),
        Err(error) => error,
    };
    let Ok(objects) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        return Err(failed);
    };
    let mut good = Vec::with_capacity(objects.len());
    for object in objects {
        match serde_json::from_str(object.get()) {
            Ok(read) => good.push(read),
            Err(source) => bad.push(BadObject { group, id: id_of(group, object), source }),
        }
    }
    Ok(good)
}

fn id_of(group: Group, object: &RawValue) -> Option<String> {
    let member = if group == Group::DiscoverUpstream { "selectorId" } else { "id" };
    let object: serde_json::Value = serde_json::from_str(object.get()).ok()?;
    object.get(member)?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
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
