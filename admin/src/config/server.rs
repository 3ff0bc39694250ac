//! `server.*`: where REST clients, gateways and browsers connect.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, MILLIS, Reader, Section, SizeUnit, TimeUnit};

const NO_TLS: &str = "HTTPS is not available in this version; put a TLS terminator in front and \
                      remove server.ssl";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Port",
    about: "",
    keys: &[
        KeySpec::new(
            "server.port",
            Kind::Port,
            "9095",
            "The port of REST, sync and console; 0 takes any free one.",
        ),
        KeySpec::new("server.address", Kind::Address, "0.0.0.0", "The address to listen on."),
        KeySpec::new(
            "server.servlet.context-path",
            Kind::Text,
            "",
            "A prefix of every path, such as `/admin`.",
        ),
        KeySpec::new(
            "shenyu.limits.requestMaxBytes",
            Kind::Size { unit: SizeUnit::Bytes, min: 1024 },
            "16MB",
            "The largest request body, but for uploads with limits of their own.",
        ),
        KeySpec::new(
            "shenyu.limits.bodiesMaxBytes",
            Kind::Size { unit: SizeUnit::Bytes, min: 1024 },
            "128MB",
            "The bodies of all calls in work together; past that a call is refused. At least requestMaxBytes.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientHead",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "10s",
            "How long a client may take to send a request head.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientWriteStall",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "60s",
            "How long a client may take nothing of its answer.",
        ),
        KeySpec::new(
            "shenyu.timeouts.request",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1 },
            "60s",
            "How long a request may take in all, but for long polling and uploads.",
        ),
        KeySpec::new(
            "shenyu.shutdown.grace",
            MILLIS,
            "10s",
            "How long requests in work may take to finish after a stop was asked for.",
        ),
        KeySpec::refused("server.ssl.certificate", NO_TLS),
        KeySpec::refused("server.ssl.keyStore", NO_TLS),
        KeySpec::refused("server.ssl.bundle", NO_TLS),
        KeySpec::inert("server.ssl.*", "without a certificate there is no HTTPS"),
        KeySpec::inert("server.*", "Java's web server"),
    ],
};

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The port; 0 takes any free one.
    pub port: u16,
    /// The address to listen on.
    pub address: IpAddr,
    /// The prefix of every path: empty, or with a leading and without a trailing slash.
    pub context_path: String,
    /// The largest request body, in bytes.
    pub request_max_bytes: usize,
    /// The bodies of all calls in work together, in bytes.
    pub bodies_max_bytes: usize,
    /// How long a client may take to send a request head.
    pub client_head_timeout: Duration,
    /// How long a client may take nothing of its answer.
    pub client_write_stall: Duration,
    /// How long a request may take in all.
    pub request_timeout: Duration,
    /// How long requests in work may take to finish after a stop was asked for.
    pub shutdown_grace: Duration,
}

impl ServerConfig {
    /// The address and port to bind.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let path: String = reader.optional("server.servlet.context-path").unwrap_or_default();
        let path = path.trim().trim_end_matches('/');
        if !path.is_empty() && !path.starts_with('/') {
            reader.reject(
                "server.servlet.context-path",
                format!("expected a path that begins with /, found \"{path}\""),
            );
        }
        let request_max_bytes = reader.get("shenyu.limits.requestMaxBytes");
        let bodies_max_bytes = reader.get("shenyu.limits.bodiesMaxBytes");
        if bodies_max_bytes < request_max_bytes {
            reader.reject(
                "shenyu.limits.bodiesMaxBytes",
                format!(
                    "expected at least shenyu.limits.requestMaxBytes ({request_max_bytes}), found \
                     {bodies_max_bytes}"
                ),
            );
        }
        Self {
            port: reader.get("server.port"),
            address: reader.get("server.address"),
            context_path: path.to_owned(),
            request_max_bytes,
            bodies_max_bytes,
            client_head_timeout: reader.get("shenyu.timeouts.clientHead"),
            client_write_stall: reader.get("shenyu.timeouts.clientWriteStall"),
            request_timeout: reader.get("shenyu.timeouts.request"),
            shutdown_grace: reader.get("shenyu.shutdown.grace"),
        }
    }
}
