//! `shenyu.httpclient.ssl.*` and `shenyu.httpclient.proxy.*`: the way to upstreams.

use std::path::PathBuf;
use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, MILLIS, Notice, Reader, Secret, Section, TimeUnit};
use longmen_core::setting_words;

const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };
const JVM: &str = "a setting of Java's HTTP client";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Proxy and TLS towards upstreams",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.httpclient.proxy.host",
            Kind::Text,
            "",
            "An HTTP proxy (CONNECT) on the way to upstreams.",
        ),
        KeySpec::new(
            "shenyu.httpclient.proxy.port",
            Kind::Int { min: 1, max: 65_535 },
            "",
            "Its port.",
        ),
        KeySpec::new("shenyu.httpclient.proxy.username", Kind::Text, "", "Its user."),
        KeySpec::new("shenyu.httpclient.proxy.password", Kind::Secret, "", "Its password."),
        KeySpec::new(
            "shenyu.httpclient.proxy.nonProxyHostsPattern",
            Kind::Pattern,
            "",
            "Hosts that are called directly.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.useInsecureTrustManager",
            Kind::Bool,
            "false",
            "Whether any certificate of an upstream is believed. Do not.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.trustedX509Certificates",
            Kind::List(&Kind::File),
            "",
            "PEM files with more roots to believe.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStorePath",
            Kind::File,
            "",
            "The client certificate with its key.",
        )
        .or(&["shenyu.httpclient.ssl.keyStore"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStoreType",
            Kind::Choice(KeyStoreType::WORDS),
            "PKCS12",
            "The form of `keyStorePath`.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStorePassword",
            Kind::Secret,
            "",
            "The password of the key store.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyPassword",
            Kind::Secret,
            "",
            "The password of the key in it.",
        )
        .not_yet("a key is opened with the password of its store"),
        KeySpec::new(
            "shenyu.httpclient.ssl.handshakeTimeout",
            POSITIVE_MILLIS,
            "10000",
            "How long a TLS handshake may take.",
        )
        .or(&["shenyu.httpclient.ssl.handshakeTimeoutMillis"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.closeNotifyFlushTimeout",
            MILLIS,
            "3000",
            "How long the end of a TLS connection may take to be sent.",
        )
        .or(&["shenyu.httpclient.ssl.closeNotifyFlushTimeoutMillis"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.closeNotifyReadTimeout",
            MILLIS,
            "0",
            "How long the peer's end of a TLS connection is awaited; 0 does not wait.",
        )
        .without_effect("the peer's end of a connection is not waited for")
        .or(&["shenyu.httpclient.ssl.closeNotifyReadTimeoutMillis"]),
        KeySpec::inert("shenyu.httpclient.ssl.keyStoreProvider", JVM),
        KeySpec::inert("shenyu.httpclient.ssl.defaultConfigurationType", JVM),
    ],
};

/// The form of a key store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStoreType {
    /// PKCS#12.
    Pkcs12,
    /// PEM, certificate chain and key in one file.
    Pem,
}

setting_words!(KeyStoreType { "PKCS12" => Self::Pkcs12, "PEM" => Self::Pem });

/// An HTTP proxy on the way to upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its user.
    pub username: Option<String>,
    /// Its password.
    pub password: Option<Secret>,
    /// A regular expression; hosts it matches are called directly.
    pub non_proxy_hosts: Option<String>,
}

/// TLS towards upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsConfig {
    /// Whether any certificate is believed.
    pub insecure: bool,
    /// PEM files with more roots.
    pub trusted_certificates: Vec<PathBuf>,
    /// The client certificate; `None`: none is shown.
    pub key_store: Option<KeyStoreConfig>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How long our end of a connection may take to be sent.
    pub close_flush_timeout: Duration,
    /// How long the peer's end is awaited; zero does not wait.
    pub close_read_timeout: Duration,
}

/// The client certificate shown to upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStoreConfig {
    /// The file.
    pub path: PathBuf,
    /// Its form.
    pub store_type: KeyStoreType,
    /// The password of the store.
    pub password: Option<Secret>,
    /// The password of the key in it.
    pub key_password: Option<Secret>,
}

impl ProxyConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let port = reader.optional("shenyu.httpclient.proxy.port");
        let username = reader.optional("shenyu.httpclient.proxy.username");
        let password = reader.secret("shenyu.httpclient.proxy.password");
        let non_proxy_hosts = reader.optional("shenyu.httpclient.proxy.nonProxyHostsPattern");
        let host = reader.optional("shenyu.httpclient.proxy.host")?;
        let Some(port) = port else {
            reader.reject(
                "shenyu.httpclient.proxy.host",
                "expected shenyu.httpclient.proxy.port beside it",
            );
            return None;
        };
        Some(Self { host, port, username, password, non_proxy_hosts })
    }
}

impl ClientTlsConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let insecure = reader.get("shenyu.httpclient.ssl.useInsecureTrustManager");
        if insecure {
            reader.note(Notice::warn(
                "shenyu.httpclient.ssl.useInsecureTrustManager is on: upstreams are not authenticated",
            ));
        }
        let store_type = reader.get("shenyu.httpclient.ssl.keyStoreType");
        let password = reader.secret("shenyu.httpclient.ssl.keyStorePassword");
        let key_password = reader.secret("shenyu.httpclient.ssl.keyPassword");
        let key_store = reader
            .optional("shenyu.httpclient.ssl.keyStorePath")
            .map(|path| KeyStoreConfig { path, store_type, password, key_password });
        Self {
            insecure,
            trusted_certificates: reader.list("shenyu.httpclient.ssl.trustedX509Certificates"),
            key_store,
            handshake_timeout: reader.get("shenyu.httpclient.ssl.handshakeTimeout"),
            close_flush_timeout: reader.get("shenyu.httpclient.ssl.closeNotifyFlushTimeout"),
            close_read_timeout: reader.get("shenyu.httpclient.ssl.closeNotifyReadTimeout"),
        }
    }
}
