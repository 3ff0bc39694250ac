//! `shenyu.sync.*`: where selectors and rules come from.

use std::path::PathBuf;
use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, Reader, Secret, Section, SizeUnit, TimeUnit};
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
            "shenyu.sync.ssl.trustedX509Certificates",
            Kind::List(&Kind::File),
            "",
            "PEM files with more roots to believe, beside the system's, where an admin's address begins with `wss://` or `https://`.",
        ),
        KeySpec::new(
            "shenyu.sync.upstreams",
            Kind::Choice(UpstreamsMode::WORDS),
            "auto",
            "How an upstream list is taken: it replaces what was there, is merged into it, or `auto` by the kind of its source.",
        ),
        KeySpec::new(
            "shenyu.sync.http.url",
            Kind::List(&Kind::Url(&["http://", "https://"])),
            "",
            "The addresses of the admins that are polled, such as `http://localhost:9095`, in place of the websocket.",
        ),
        KeySpec::new(
            "shenyu.sync.http.username",
            Kind::Text,
            "",
            "The user that polling logs in as; without one `shenyu.sync.token` is shown, which only our admin takes.",
        ),
        KeySpec::new("shenyu.sync.http.password", Kind::Secret, "", "That user's password."),
        KeySpec::new(
            "shenyu.sync.http.aesSecretKey",
            Kind::Secret,
            "",
            "The key by which the password is encrypted on its way: 16, 24 or 32 bytes, `shenyu.aes.secret.key` of the admin.",
        ),
        KeySpec::new(
            "shenyu.sync.http.aesSecretIv",
            Kind::Secret,
            "",
            "The initial vector that goes with it: 16 bytes.",
        ),
        KeySpec::new(
            "shenyu.sync.http.connectionTimeout",
            POSITIVE_MILLIS,
            "10s",
            "How long connecting to a polled admin may take.",
        ),
        KeySpec::new(
            "shenyu.sync.http.readTimeout",
            POSITIVE_MILLIS,
            "90s",
            "How long the answer to a question may take; admins hold one for 60 s.",
        ),
        KeySpec::new(
            "shenyu.sync.http.reconnectInterval",
            POSITIVE_MILLIS,
            "5s",
            "The longest pause after a question without an answer; the first is 100 ms and doubles, with jitter.",
        ),
        KeySpec::new(
            "shenyu.sync.http.maxBodySize",
            Kind::Size { unit: SizeUnit::Bytes, min: 1_048_576 },
            "256MB",
            "The largest answer taken from a polled admin.",
        ),
        KeySpec::inert("shenyu.sync.http.delayTime", "the next question follows at once"),
        KeySpec::inert("shenyu.sync.http.writeTimeout", "a question is sent in one piece"),
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
    /// The admins that are polled; without urls none is.
    pub http: HttpSyncConfig,
    /// The token shown to our admin.
    pub token: Option<Secret>,
    /// PEM files with more roots for admins that are reached by TLS.
    pub trusted_certificates: Vec<PathBuf>,
    /// How an upstream list is taken.
    pub upstreams: UpstreamsMode,
}

/// The admins that are polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSyncConfig {
    /// Addresses with scheme `http` or `https`, in the order written; empty: nobody is polled.
    pub urls: Vec<String>,
    /// The user that logs in; `None`: the token is shown.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<Secret>,
    /// Key and initial vector by which the password is encrypted on its way.
    pub aes: Option<(Secret, Secret)>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long the answer to a question may take.
    pub read_timeout: Duration,
    /// The longest pause after a question without an answer.
    pub reconnect_interval: Duration,
    /// The largest answer taken, in bytes.
    pub max_body_bytes: usize,
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
        let http = HttpSyncConfig::read(reader);
        if !reader.is_set("shenyu.sync.websocket.urls") && !reader.is_set("shenyu.sync.http.url") {
            // A gateway without data would answer every request with "no such route".
            for path in OTHER_SOURCES {
                if reader.is_set(path) {
                    reader.reject(path, "is a source of data that this version does not have; expected shenyu.sync.websocket.urls or shenyu.sync.http.url");
                }
            }
        }
        if !websocket.urls.is_empty() && !http.urls.is_empty() {
            // Both would bring the same, one after the other and each in its own steps.
            reader.reject(
                "shenyu.sync.http.url",
                "is a second source of data beside shenyu.sync.websocket.urls; expected one of them",
            );
        }
        Self {
            websocket,
            http,
            token: reader.secret("shenyu.sync.token"),
            trusted_certificates: reader.list("shenyu.sync.ssl.trustedX509Certificates"),
            upstreams: reader.get("shenyu.sync.upstreams"),
        }
    }
}

impl HttpSyncConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let http = Self {
            urls: reader.list("shenyu.sync.http.url"),
            username: Some(reader.get("shenyu.sync.http.username"))
                .filter(|name: &String| !name.is_empty()),
            password: reader.secret("shenyu.sync.http.password"),
            aes: reader
                .secret("shenyu.sync.http.aesSecretKey")
                .zip(reader.secret("shenyu.sync.http.aesSecretIv")),
            connect_timeout: reader.get("shenyu.sync.http.connectionTimeout"),
            read_timeout: reader.get("shenyu.sync.http.readTimeout"),
            reconnect_interval: reader.get("shenyu.sync.http.reconnectInterval"),
            max_body_bytes: reader.get("shenyu.sync.http.maxBodySize"),
        };
        if let Some((key, iv)) = &http.aes
            && let Err(fault) = crate::sync::check_aes(key.expose(), iv.expose())
        {
            reader.reject("shenyu.sync.http.aesSecretKey", fault);
        }
        let with_token = reader.secret("shenyu.sync.token").is_some();
        if !http.urls.is_empty() && http.username.is_none() && !with_token {
            reader.reject(
                "shenyu.sync.http.url",
                "needs somebody who logs in; expected shenyu.sync.http.username, or \
                 shenyu.sync.token for an admin of Longmen",
            );
        }
        http
    }
}
