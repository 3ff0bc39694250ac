//! `shenyu.sync.*`: where selectors and rules come from.

use std::time::Duration;

use longmen_core::config::{
    KeySpec, Kind, MILLIS, Reader, Secret, Section, SizeUnit, TEXTS, TimeUnit,
};
use longmen_core::setting_words;

/// How an upstream list from an admin is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamsMode {
    /// As the kind of its source says; lists of our own admin replace.
    Auto,
    /// Every list replaces what was there.
    Replace,
    /// Every list is added to what was there.
    Merge,
}

setting_words!(UpstreamsMode {
    "auto" => Self::Auto, "replace" => Self::Replace, "merge" => Self::Merge,
});

const NOT_YET: &str = "a source of data that this version does not have";
const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };

/// The sources that this version cannot read, by the key that switches each on.
const OTHER_SOURCES: &[&str] = &[
    "shenyu.sync.http.url",
    "shenyu.sync.zookeeper.url",
    "shenyu.sync.nacos.url",
    "shenyu.sync.etcd.url",
    "shenyu.sync.consul.url",
    "shenyu.sync.apollo.meta",
    "shenyu.sync.polaris.url",
];

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Sync",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.sync.websocket.urls",
            Kind::List(&Kind::Url(&["ws://", "wss://"])),
            "",
            "The admins' websocket addresses, such as `ws://localhost:9095/websocket`.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.allowOrigin",
            Kind::Text,
            "ws://localhost:9195",
            "The `Origin` that is sent to the admins; a stock admin compares it with its `allowOrigins`.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.masterCheckInterval",
            POSITIVE_MILLIS,
            "60s",
            "How often a stock admin is asked whether it is the master.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.pingInterval",
            POSITIVE_MILLIS,
            "10s",
            "How often an admin is pinged and told about this gateway.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.connectTimeout",
            POSITIVE_MILLIS,
            "10s",
            "How long connecting and the handshake may take.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.answerTimeout",
            POSITIVE_MILLIS,
            "30s",
            "How long an admin of Longmen may leave a request for changes unanswered, and the parts of one change set apart; then the next admin is tried.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.reconnectInterval",
            POSITIVE_MILLIS,
            "1s",
            "The longest pause before connecting again; the first is 100 ms and doubles, with jitter.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.maxMessageSize",
            Kind::Size { unit: SizeUnit::Bytes, min: 1_048_576 },
            "64MB",
            "The largest message taken from an admin.",
        ),
        KeySpec::new(
            "shenyu.sync.token",
            Kind::Secret,
            "",
            "The token that our admin asks for from peers that are not on its own machine.",
        ),
        KeySpec::new(
            "shenyu.sync.upstreams",
            Kind::Choice(UpstreamsMode::WORDS),
            "auto",
            "How an upstream list is taken: it replaces what was there, is merged into it, or `auto` by the kind of its source.",
        ),
        KeySpec::pending("shenyu.sync.http.url", TEXTS, NOT_YET),
        KeySpec::pending("shenyu.sync.http.username", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.http.password", Kind::Secret, NOT_YET),
        KeySpec::pending("shenyu.sync.http.aesSecretKey", Kind::Secret, NOT_YET),
        KeySpec::pending("shenyu.sync.http.aesSecretIv", Kind::Secret, NOT_YET),
        KeySpec::pending("shenyu.sync.http.delayTime", MILLIS, NOT_YET),
        KeySpec::pending("shenyu.sync.http.connectionTimeout", MILLIS, NOT_YET),
        KeySpec::pending("shenyu.sync.http.readTimeout", MILLIS, NOT_YET),
        KeySpec::pending("shenyu.sync.http.writeTimeout", MILLIS, NOT_YET),
        KeySpec::pending("shenyu.sync.zookeeper.url", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.zookeeper.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.nacos.url", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.nacos.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.etcd.url", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.etcd.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.consul.url", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.consul.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.apollo.meta", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.apollo.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.polaris.url", Kind::Text, NOT_YET),
        KeySpec::pending("shenyu.sync.polaris.*", Kind::Any, NOT_YET),
        KeySpec::pending(
            "shenyu.register.enabled",
            Kind::Bool,
            "registration of this gateway in a registry",
        ),
        KeySpec::inert("shenyu.register.*", "registration is not switched on"),
        KeySpec::inert("shenyu.heartbeat.*", "the websocket carries the instance report"),
        KeySpec::inert("shenyu.instance.*", "registration is not switched on"),
    ],
};

/// Where selectors and rules come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncConfig {
    /// The admins' websockets; empty: no admin.
    pub websocket: WebsocketSyncConfig,
    /// The token shown to our admin.
    pub token: Option<Secret>,
    /// How an upstream list is taken.
    pub upstreams: UpstreamsMode,
}

/// The websocket to the admins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebsocketSyncConfig {
    /// Addresses with scheme `ws` or `wss`, in the order written; empty: no sync.
    pub urls: Vec<String>,
    /// The `Origin` header of the handshake.
    pub allow_origin: String,
    /// How often a stock admin is asked whether it is the master.
    pub master_check_interval: Duration,
    /// How often an admin is pinged and told about this gateway.
    pub ping_interval: Duration,
    /// How long connecting and the handshake may take.
    pub connect_timeout: Duration,
    /// How long an admin of ours may leave a request unanswered, or a change set unfinished.
    pub answer_timeout: Duration,
    /// The longest pause before connecting again.
    pub reconnect_interval: Duration,
    /// The largest message taken, in bytes.
    pub max_message_bytes: usize,
}

impl SyncConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let websocket = WebsocketSyncConfig {
            urls: reader.list("shenyu.sync.websocket.urls"),
            allow_origin: reader.get("shenyu.sync.websocket.allowOrigin"),
            master_check_interval: reader.get("shenyu.sync.websocket.masterCheckInterval"),
            ping_interval: reader.get("shenyu.sync.websocket.pingInterval"),
            connect_timeout: reader.get("shenyu.sync.websocket.connectTimeout"),
            answer_timeout: reader.get("shenyu.sync.websocket.answerTimeout"),
            reconnect_interval: reader.get("shenyu.sync.websocket.reconnectInterval"),
            max_message_bytes: reader.get("shenyu.sync.websocket.maxMessageSize"),
        };
        if !reader.is_set("shenyu.sync.websocket.urls") {
            // A gateway without data would answer every request with "no such route".
            for path in OTHER_SOURCES {
                if reader.is_set(path) {
                    reader.reject(path, "is a source of data that this version does not have; expected shenyu.sync.websocket.urls");
                }
            }
        }
        Self {
            websocket,
            token: reader.secret("shenyu.sync.token"),
            upstreams: reader.get("shenyu.sync.upstreams"),
        }
    }
}
