//! `shenyu.sync.*`: the channels to gateways.

use longmen_core::config::{
    KeySpec, Kind, Notice, Reader, Secret, Section, SizeUnit, TEXTS, TimeUnit,
};

const NOT_YET: &str = "a channel that this version does not have";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Sync",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.sync.websocket.enabled",
            Kind::Bool,
            "true",
            "Whether gateways are served at `/websocket`.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.messageMaxSize",
            Kind::Size { unit: SizeUnit::Bytes, min: 0 },
            "10240",
            "The largest message taken from a stock gateway; 0 means 8192.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.allowOrigins",
            TEXTS,
            "",
            "The `Origin`s that are let in, compared whole; empty lets in all.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.allowAnonymous",
            Kind::Bool,
            "false",
            "Whether gateways without the sync token are let in from other machines, as stock gateways need.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.silence",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "90s",
            "How long a stock gateway may say nothing before it counts as gone; it pings every 10 s.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.maxSessions",
            Kind::Int { min: 1, max: 1_000_000 },
            "1000",
            "The most gateways connected at once.",
        ),
        KeySpec::new(
            "shenyu.sync.websocket.queueSize",
            Kind::Int { min: 16, max: 1_000_000 },
            "8192",
            "Changes that may wait for one gateway; one that falls behind further is cut off and starts again.",
        ),
        KeySpec::new(
            "shenyu.sync.token",
            Kind::Secret,
            "",
            "The token that gateways on other machines show.",
        )
        .computed("made at first start, in `shenyu.sync.tokenPath`"),
        KeySpec::new(
            "shenyu.sync.tokenPath",
            Kind::File,
            ".data/sync-token",
            "The file that the token is kept in where none is configured.",
        ),
        KeySpec::new(
            "shenyu.sync.pollInterval",
            longmen_core::config::MILLIS,
            "1s",
            "How often the change log is read where no wake-up comes.",
        ),
        KeySpec::new(
            "shenyu.sync.queryTimeout",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "10s",
            "How long the sync waits for one answer of the database before it takes another connection; for a whole namespace twelve times as long.",
        ),
        KeySpec::new(
            "shenyu.sync.http.enabled",
            Kind::Bool,
            "false",
            "Whether gateways may poll, at `/configs/fetch` and `/configs/listener`; both ask for a log-in's token or the sync token.",
        ),
        KeySpec::new(
            "shenyu.sync.http.holdTime",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "60s",
            "How long a polling gateway's question is held where nothing changes; a stock gateway waits 90 s for the answer.",
        ),
        KeySpec::new(
            "shenyu.sync.http.maxHeld",
            Kind::Int { min: 1, max: 1_000_000 },
            "1024",
            "The most questions held at once; further ones are answered 503.",
        ),
        KeySpec::inert("shenyu.sync.http.refreshInterval", "the change log says what changed"),
        KeySpec::inert("shenyu.sync.http.notifyBatchSize", "all that wait are answered at once"),
        KeySpec::pending("shenyu.sync.zookeeper.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.nacos.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.etcd.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.consul.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.apollo.*", Kind::Any, NOT_YET),
        KeySpec::pending("shenyu.sync.polaris.*", Kind::Any, NOT_YET),
    ],
};

/// The channels to gateways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncConfig {
    /// The websocket.
    pub websocket: WebsocketSyncConfig,
    /// The channel for gateways that poll.
    pub http: HttpSyncConfig,
    /// The token that gateways on other machines show; `None`: the one in `token_path`, which is
    /// made at first start.
    pub token: Option<Secret>,
    /// The file that the token is kept in where none is configured.
    pub token_path: std::path::PathBuf,
    /// How often the change log is read where no wake-up comes.
    pub poll_interval: std::time::Duration,
    /// How long the sync waits for one answer of the database.
    pub query_timeout: std::time::Duration,
}

/// The channel for gateways that poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSyncConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// How long a question is held where nothing changes.
    pub hold: std::time::Duration,
    /// The most questions held at once.
    pub max_held: usize,
}

/// The websocket to gateways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebsocketSyncConfig {
    /// Whether there is one.
    pub enabled: bool,
    /// The largest message taken from a stock gateway, in bytes.
    pub max_message_bytes: usize,
    /// The `Origin`s that are let in, compared whole; empty: all.
    pub allow_origins: Vec<String>,
    /// Whether gateways without the sync token are let in from other machines.
    pub allow_anonymous: bool,
    /// How long a stock gateway may say nothing.
    pub silence: std::time::Duration,
    /// The most gateways connected at once.
    pub max_sessions: usize,
    /// Changes that may wait for one gateway.
    pub queue_size: usize,
}

impl SyncConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let allow_anonymous = reader.get("shenyu.sync.websocket.allowAnonymous");
        if allow_anonymous {
            reader.note(Notice::warn(
                "shenyu.sync.websocket.allowAnonymous is on: anybody who reaches this port can read \
                 all configuration",
            ));
        }
        let max_message_bytes = match reader.get("shenyu.sync.websocket.messageMaxSize") {
            // What the reference's web server then takes.
            0 => 8192,
            bytes => bytes,
        };
        Self {
            websocket: WebsocketSyncConfig {
                enabled: reader.get("shenyu.sync.websocket.enabled"),
                max_message_bytes,
                allow_origins: reader.list("shenyu.sync.websocket.allowOrigins"),
                allow_anonymous,
                silence: reader.get("shenyu.sync.websocket.silence"),
                max_sessions: reader.get("shenyu.sync.websocket.maxSessions"),
                queue_size: reader.get("shenyu.sync.websocket.queueSize"),
            },
            http: HttpSyncConfig {
                enabled: reader.get("shenyu.sync.http.enabled"),
                hold: reader.get("shenyu.sync.http.holdTime"),
                max_held: reader.get("shenyu.sync.http.maxHeld"),
            },
            token: reader.secret("shenyu.sync.token"),
            token_path: reader.get("shenyu.sync.tokenPath"),
            poll_interval: reader.get("shenyu.sync.pollInterval"),
            query_timeout: reader.get("shenyu.sync.queryTimeout"),
        }
    }
}
