//! Groups, events, frames and the messages around them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};

/// The kinds of objects that are synced, in the reference's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Group {
    /// Application keys.
    AppAuth,
    /// Plugins.
    Plugin,
    /// Rules.
    Rule,
    /// Selectors.
    Selector,
    /// Registered APIs.
    MetaData,
    /// Raw ports, and announcements of bound selectors.
    ProxySelector,
    /// Keys that stand for an AI provider's key.
    AiProxyApiKey,
    /// Upstream lists of selectors. The reference spells it so.
    DiscoverUpstream,
}

impl Group {
    /// All groups, in the reference's order.
    pub const ALL: [Self; 8] = [
        Self::AppAuth,
        Self::Plugin,
        Self::Rule,
        Self::Selector,
        Self::MetaData,
        Self::ProxySelector,
        Self::AiProxyApiKey,
        Self::DiscoverUpstream,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AppAuth => "APP_AUTH",
            Self::Plugin => "PLUGIN",
            Self::Rule => "RULE",
            Self::Selector => "SELECTOR",
            Self::MetaData => "META_DATA",
            Self::ProxySelector => "PROXY_SELECTOR",
            Self::AiProxyApiKey => "AI_PROXY_API_KEY",
            Self::DiscoverUpstream => "DISCOVER_UPSTREAM",
        }
    }

    /// Reads the name on the wire; `None` for a group this build does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What happened to the objects of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Event {
    /// They are gone; only the identifying members count.
    Delete,
    /// They are new; the same as an update.
    Create,
    /// They replace what has the same key.
    Update,
    /// They replace what has the same key; says nothing about what is not listed.
    Refresh,
    /// An answer about the running mode; no data.
    RunningMode,
    /// Part of the answer to a gateway that asked for everything.
    Myself,
}

impl Event {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Refresh => "REFRESH",
            Self::RunningMode => "RUNNING_MODE",
            Self::Myself => "MYSELF",
        }
    }

    /// Reads the name on the wire; `None` for an event this build does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Delete, Self::Create, Self::Update, Self::Refresh, Self::RunningMode, Self::Myself]
            .into_iter()
            .find(|event| event.name() == name)
    }
}

/// The objects of one frame; all of one group and one namespace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    /// Application keys.
    AppAuth(Vec<AppAuth>),
    /// Plugins.
    Plugin(Vec<Plugin>),
    /// Rules.
    Rule(Vec<Rule>),
    /// Selectors.
    Selector(Vec<Selector>),
    /// Registered APIs.
    MetaData(Vec<MetaData>),
    /// Raw ports and announcements.
    ProxySelector(Vec<ProxySelector>),
    /// AI keys.
    AiProxyApiKey(Vec<ProxyApiKey>),
    /// Upstream lists.
    DiscoverUpstream(Vec<UpstreamList>),
}

impl Payload {
    /// The group these objects belong to.
    #[must_use]
    pub const fn group(&self) -> Group {
        match self {
            Self::AppAuth(_) => Group::AppAuth,
            Self::Plugin(_) => Group::Plugin,
            Self::Rule(_) => Group::Rule,
            Self::Selector(_) => Group::Selector,
            Self::MetaData(_) => Group::MetaData,
            Self::ProxySelector(_) => Group::ProxySelector,
            Self::AiProxyApiKey(_) => Group::AiProxyApiKey,
            Self::DiscoverUpstream(_) => Group::DiscoverUpstream,
        }
    }

    /// How many objects there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::AppAuth(v) => v.len(),
            Self::Plugin(v) => v.len(),
            Self::Rule(v) => v.len(),
            Self::Selector(v) => v.len(),
            Self::MetaData(v) => v.len(),
            Self::ProxySelector(v) => v.len(),
            Self::AiProxyApiKey(v) => v.len(),
            Self::DiscoverUpstream(v) => v.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One message of data from admin to gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What happened.
    pub event: Event,
    /// To which objects.
    pub payload: Payload,
    /// Our addition; `None` from and to stock peers.
    pub mark: Option<Mark>,
}

/// Where a frame stands in the history of its namespace. Only between our own parts.
///
/// A change set is every frame of one `(epoch, version)`; it is applied in one step when the frame
/// marked `last` has arrived. In a full refresh every frame is marked `refresh`, and a mark without
/// data, `last` and `refresh`, ends it: what was not in it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Which database the version counts in.
    pub epoch: String,
    /// The version that is in force once the set is applied.
    pub version: u64,
    /// Whether this is the last frame of its change set or refresh.
    #[serde(default, skip_serializing_if = "is_false")]
    pub last: bool,
    /// Whether it belongs to a full refresh.
    #[serde(default, skip_serializing_if = "is_false")]
    pub refresh: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Whether an admin stands alone or in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunningModeKind {
    /// One admin.
    Standalone,
    /// Several, one of which is the master.
    Cluster,
}

/// The answer to the word [`super::RUNNING_MODE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningMode {
    /// Always [`Event::RunningMode`].
    pub event_type: Event,
    /// Alone or in a cluster.
    pub running_mode: RunningModeKind,
    /// Whether this admin publishes changes.
    #[serde(default)]
    pub is_master: bool,
    /// Where the master is; informational.
    #[serde(default)]
    pub master_url: String,
}

impl RunningMode {
    /// The answer of an admin that stands alone, under the given context path.
    #[must_use]
    pub fn standalone(context_path: &str) -> Self {
        Self {
            event_type: Event::RunningMode,
            running_mode: RunningModeKind::Standalone,
            is_master: true,
            master_url: format!("{context_path}/websocket"),
        }
    }
}

/// What one of our gateways sends to one of our admins, inside the member `longmen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientMessage {
    /// Sent once after the handshake instead of the stock words: where the gateway stands. The
    /// admin answers with the missing change sets or with a full refresh. Without a position, or
    /// from another epoch, always a full refresh.
    Resume {
        /// The epoch of the version; empty for a gateway that has nothing.
        #[serde(default)]
        epoch: String,
        /// The version in force; 0 for a gateway that has nothing.
        #[serde(default)]
        version: u64,
    },
    /// The version is in force on this gateway.
    Ack {
        /// The epoch of the version.
        epoch: String,
        /// The version.
        version: u64,
        /// What the gateway could not take over; the last good state of those objects stays.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        faults: Vec<GatewayFault>,
    },
}

/// An object that a gateway could not take over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayFault {
    /// The group of the object.
    pub group: Group,
    /// Its id (for plugins the name).
    pub id: String,
    /// The plugin it belongs to.
    pub plugin: String,
    /// What is wrong: field, value, expectation.
    pub text: String,
}
