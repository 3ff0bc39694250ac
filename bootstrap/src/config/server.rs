//! `server.*`: where clients connect.

use std::net::{IpAddr, SocketAddr};

use longmen_core::config::{BYTES, KeySpec, Kind, Reader, Section, TEXTS};

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Public port",
    about: "",
    keys: &[
        KeySpec::new(
            "server.port",
            Kind::Port,
            "9195",
            "The port clients connect to; 0 takes any free one.",
        ),
        KeySpec::new("server.address", Kind::Address, "0.0.0.0", "The address to listen on."),
        KeySpec::new(
            "server.http2.enabled",
            Kind::Bool,
            "true",
            "Whether HTTP/2 without TLS (h2c, prior knowledge) is served beside HTTP/1.1.",
        ),
        KeySpec::new(
            "server.compression.enabled",
            Kind::Bool,
            "false",
            "Whether answers are compressed for clients that accept it.",
        ).not_yet("answers are sent as the upstream compressed them, or did not"),
        KeySpec::new(
            "server.compression.minResponseSize",
            BYTES,
            "2KB",
            "Shorter answers are sent as they are.",
        ).without_effect("answers are not compressed by this version"),
        KeySpec::new(
            "server.compression.mimeTypes",
            TEXTS,
            "text/html, text/xml, text/plain, text/css, text/javascript, application/javascript, application/json, application/xml",
            "Media types that are compressed.",
        ).without_effect("answers are not compressed by this version"),
        KeySpec::new(
            "server.compression.excludedUserAgents",
            TEXTS,
            "",
            "User agents whose answers are never compressed.",
        ).without_effect("answers are not compressed by this version"),
        KeySpec::new(
            "spring.codec.max-in-memory-size",
            Kind::Size { unit: longmen_core::config::SizeUnit::Bytes, min: 1024 },
            "2MB",
            "The most bytes of a body that a plugin may see as a whole.",
        ).without_effect("no plugin of this version takes a body as a whole"),
        KeySpec::refused(
            "server.ssl.certificate",
            "HTTPS on the public port is not available in this version; put a TLS terminator in front and remove server.ssl",
        ),
        KeySpec::refused(
            "server.ssl.keyStore",
            "HTTPS on the public port is not available in this version; put a TLS terminator in front and remove server.ssl",
        ),
        KeySpec::refused(
            "server.ssl.bundle",
            "HTTPS on the public port is not available in this version; put a TLS terminator in front and remove server.ssl",
        ),
        KeySpec::inert("server.ssl.*", "without a certificate there is no HTTPS"),
        KeySpec::pending(
            "server.forwardHeadersStrategy",
            Kind::Text,
            "use `shenyu.forwarded.trusted`",
        ),
        KeySpec::inert("server.shutdown", "every stop is graceful: see `shenyu.shutdown.*`"),
        KeySpec::inert("server.netty.*", "see `shenyu.netty.http.*`"),
        KeySpec::inert("server.reactive.*", "Java's web framework"),
        KeySpec::inert("server.error.*", "Java's web framework"),
    ],
};

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The port; 0 takes any free one.
    pub port: u16,
    /// The address to listen on.
    pub address: IpAddr,
    /// Whether h2c is served.
    pub http2: bool,
    /// How answers are compressed.
    pub compression: CompressionConfig,
    /// The most bytes of a body that a plugin may see as a whole.
    pub body_buffer_bytes: u64,
}

/// How answers are compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionConfig {
    /// Whether at all.
    pub enabled: bool,
    /// Shorter answers, in bytes, are sent as they are.
    pub min_response_bytes: u64,
    /// Media types that are compressed, without parameters.
    pub mime_types: Vec<String>,
    /// User agents whose answers are never compressed.
    pub excluded_user_agents: Vec<String>,
}

impl ServerConfig {
    /// The address and port to bind.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            port: reader.get("server.port"),
            address: reader.get("server.address"),
            http2: reader.get("server.http2.enabled"),
            compression: CompressionConfig {
                enabled: reader.get("server.compression.enabled"),
                min_response_bytes: reader.get("server.compression.minResponseSize"),
                mime_types: reader.list("server.compression.mimeTypes"),
                excluded_user_agents: reader.list("server.compression.excludedUserAgents"),
            },
            body_buffer_bytes: reader.get("spring.codec.max-in-memory-size"),
        }
    }
}
