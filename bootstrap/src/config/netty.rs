//! `shenyu.netty.http.*`: workers, sockets and the limits of the request head.

use std::path::PathBuf;

use longmen_core::config::{KeySpec, Kind, Reader, Section, SizeUnit};
use longmen_core::setting_words;

/// How connections are spread over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerModel {
    /// Each worker is a thread with a listener and an upstream pool of its own.
    PerCore,
    /// The workers share listener and pool and take each other's work.
    Shared,
}

setting_words!(WorkerModel { "perCore" => Self::PerCore, "shared" => Self::Shared });

const JVM: &str = "a setting of Java's network library";

const fn bytes(min: u64) -> Kind {
    Kind::Size { unit: SizeUnit::Bytes, min }
}

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Workers and sockets",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.netty.http.workerCount",
            Kind::Int { min: 0, max: 1024 },
            "0",
            "Data workers; 0 takes one for each core.",
        ),
        KeySpec::new(
            "shenyu.netty.http.workerModel",
            Kind::Choice(WorkerModel::WORDS),
            "perCore",
            "`perCore`: each worker has a listener and upstream connections of its own. `shared`: workers take each other's work.",
        ),
        KeySpec::new(
            "shenyu.netty.http.selectCount",
            Kind::Int { min: 1, max: 1024 },
            "1",
            "Accept loops of the `shared` model.",
        ),
        KeySpec::new(
            "shenyu.netty.http.accessLog",
            Kind::Bool,
            "false",
            "Whether every request is logged.",
        ),
        KeySpec::new(
            "shenyu.netty.http.httpDecoder.maxInitialLineLength",
            bytes(64),
            "4096",
            "The longest request line; longer ones are answered 414.",
        ),
        KeySpec::new(
            "shenyu.netty.http.httpDecoder.maxHeaderSize",
            bytes(512),
            "8192",
            "The largest header section; larger ones are answered 431.",
        ),
        KeySpec::new(
            "shenyu.netty.http.httpDecoder.maxChunkSize",
            bytes(512),
            "8192",
            "The size of the buffer that request bodies are read into.",
        )
        .without_effect("bodies stream in the pieces that arrive"),
        KeySpec::new(
            "shenyu.netty.http.serverSocketChannel.soBackLog",
            Kind::Int { min: 1, max: 65_535 },
            "1024",
            "Connections that may wait to be accepted; the kernel may allow fewer.",
        ),
        KeySpec::new(
            "shenyu.netty.http.serverSocketChannel.soReuseAddr",
            Kind::Bool,
            "true",
            "`SO_REUSEADDR` of the listener.",
        ),
        KeySpec::new(
            "shenyu.netty.http.serverSocketChannel.soRcvBuf",
            bytes(0),
            "",
            "`SO_RCVBUF` of the listener, which accepted connections inherit.",
        )
        .computed("the kernel's"),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.tcpNoDelay",
            Kind::Bool,
            "true",
            "`TCP_NODELAY` of accepted connections.",
        ),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.soKeepAlive",
            Kind::Bool,
            "false",
            "TCP keep-alive of accepted connections.",
        ),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.soLinger",
            Kind::Int { min: -1, max: 65_535 },
            "-1",
            "`SO_LINGER` in seconds; -1 is off.",
        ),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.ipTos",
            Kind::Int { min: 0, max: 255 },
            "0",
            "`IP_TOS` of accepted connections.",
        ),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.allowHalfClosure",
            Kind::Bool,
            "false",
            "Whether a client that has closed its sending side still gets its answer.",
        ),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.soRcvBuf",
            bytes(0),
            "",
            "`SO_RCVBUF` of accepted connections.",
        )
        .computed("the kernel's"),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.soSndBuf",
            bytes(0),
            "",
            "`SO_SNDBUF` of accepted connections.",
        )
        .computed("the kernel's"),
        KeySpec::new(
            "shenyu.netty.http.socketChannel.writeBufferHighWaterMark",
            bytes(8192),
            "65536",
            "The most bytes of an answer that are held for one connection.",
        ),
        KeySpec::new(
            "shenyu.netty.http.sni.enabled",
            Kind::Bool,
            "false",
            "Whether the certificate is chosen by the name that the client asks for.",
        )
        .not_yet("HTTPS on the public port"),
        KeySpec::new(
            "shenyu.netty.http.sni.mod",
            Kind::Choice(SniMode::WORDS),
            "manual",
            "Where certificates come from.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::new(
            "shenyu.netty.http.sni.defaultK8sSecretNamespace",
            Kind::Text,
            "",
            "The namespace of the default certificate.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::new(
            "shenyu.netty.http.sni.defaultK8sSecretName",
            Kind::Text,
            "",
            "The name of the default certificate.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::new(
            "shenyu.netty.http.sni.certificates[].domain",
            Kind::Text,
            "",
            "A name, with `*` for any text.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::new(
            "shenyu.netty.http.sni.certificates[].keyCertChainFile",
            Kind::File,
            "",
            "The certificate chain, PEM.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::new(
            "shenyu.netty.http.sni.certificates[].keyFile",
            Kind::File,
            "",
            "The private key, PEM.",
        )
        .without_effect("HTTPS on the public port is not available in this version"),
        KeySpec::inert("shenyu.netty.http.webServerFactoryEnabled", JVM),
        KeySpec::inert("shenyu.netty.http.serverSocketChannel.*", JVM),
        KeySpec::inert("shenyu.netty.http.socketChannel.*", JVM),
    ],
};

/// Where the certificates of `sni` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SniMode {
    /// Files.
    Manual,
    /// Secrets of Kubernetes.
    K8s,
}

setting_words!(SniMode { "manual" => Self::Manual, "k8s" => Self::K8s });

/// Workers, sockets and the limits of the request head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NettyConfig {
    /// Data workers; 0 takes one for each core.
    pub worker_count: usize,
    /// How connections are spread over workers.
    pub worker_model: WorkerModel,
    /// Accept loops of the shared model.
    pub accept_loops: usize,
    /// Whether every request is logged.
    pub access_log: bool,
    /// The longest request line, in bytes.
    pub max_initial_line_bytes: usize,
    /// The largest header section, in bytes.
    pub max_header_bytes: usize,
    /// The buffer that bodies are read into, in bytes.
    pub read_buffer_bytes: usize,
    /// The listener's options.
    pub listener: ListenerOptions,
    /// The options of accepted connections.
    pub socket: SocketOptions,
    /// Choice of certificate by name; `None` while `sni.enabled` is false.
    pub sni: Option<SniConfig>,
}

/// Options of the listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerOptions {
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// `SO_REUSEADDR`.
    pub reuse_address: bool,
    /// `SO_RCVBUF` in bytes; `None` leaves the kernel's.
    pub receive_buffer_bytes: Option<usize>,
}

/// Options of accepted connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketOptions {
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// TCP keep-alive.
    pub keep_alive: bool,
    /// `SO_LINGER` in seconds; `None` is off.
    pub linger_seconds: Option<u32>,
    /// `IP_TOS`; `None` leaves it at 0.
    pub tos: Option<u32>,
    /// Whether a client that has closed its sending side still gets its answer.
    pub allow_half_closure: bool,
    /// `SO_RCVBUF` in bytes; `None` leaves the kernel's.
    pub receive_buffer_bytes: Option<usize>,
    /// `SO_SNDBUF` in bytes; `None` leaves the kernel's.
    pub send_buffer_bytes: Option<usize>,
    /// The most bytes of an answer that are held for one connection.
    pub write_buffer_bytes: usize,
}

/// Choice of certificate by the name that the client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniConfig {
    /// Where certificates come from.
    pub mode: SniMode,
    /// Namespace and name of the default certificate in Kubernetes.
    pub default_secret: Option<(String, String)>,
    /// The certificates of the manual mode; at least one there.
    pub certificates: Vec<SniCertificate>,
}

/// One certificate of `sni`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniCertificate {
    /// A name, with `*` for any text.
    pub domain: String,
    /// The certificate chain, PEM.
    pub chain_file: PathBuf,
    /// The private key, PEM.
    pub key_file: PathBuf,
}

impl NettyConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let linger: i32 = reader.get("shenyu.netty.http.socketChannel.soLinger");
        let tos: u32 = reader.get("shenyu.netty.http.socketChannel.ipTos");
        Self {
            worker_count: reader.get("shenyu.netty.http.workerCount"),
            worker_model: reader.get("shenyu.netty.http.workerModel"),
            accept_loops: reader.get("shenyu.netty.http.selectCount"),
            access_log: reader.get("shenyu.netty.http.accessLog"),
            max_initial_line_bytes: reader
                .get("shenyu.netty.http.httpDecoder.maxInitialLineLength"),
            max_header_bytes: reader.get("shenyu.netty.http.httpDecoder.maxHeaderSize"),
            read_buffer_bytes: reader.get("shenyu.netty.http.httpDecoder.maxChunkSize"),
            listener: ListenerOptions {
                backlog: reader.get("shenyu.netty.http.serverSocketChannel.soBackLog"),
                reuse_address: reader.get("shenyu.netty.http.serverSocketChannel.soReuseAddr"),
                receive_buffer_bytes: reader
                    .optional("shenyu.netty.http.serverSocketChannel.soRcvBuf"),
            },
            socket: SocketOptions {
                no_delay: reader.get("shenyu.netty.http.socketChannel.tcpNoDelay"),
                keep_alive: reader.get("shenyu.netty.http.socketChannel.soKeepAlive"),
                linger_seconds: u32::try_from(linger).ok(),
                tos: (tos > 0).then_some(tos),
                allow_half_closure: reader.get("shenyu.netty.http.socketChannel.allowHalfClosure"),
                receive_buffer_bytes: reader.optional("shenyu.netty.http.socketChannel.soRcvBuf"),
                send_buffer_bytes: reader.optional("shenyu.netty.http.socketChannel.soSndBuf"),
                write_buffer_bytes: reader
                    .get("shenyu.netty.http.socketChannel.writeBufferHighWaterMark"),
            },
            sni: SniConfig::read(reader),
        }
    }

    /// The number of data workers: what is configured, else one for each core.
    pub fn workers(&self) -> usize {
        match self.worker_count {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            count => count,
        }
    }
}

impl SniConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let enabled: bool = reader.get("shenyu.netty.http.sni.enabled");
        let mode = reader.get("shenyu.netty.http.sni.mod");
        let namespace = reader.optional("shenyu.netty.http.sni.defaultK8sSecretNamespace");
        let name = reader.optional("shenyu.netty.http.sni.defaultK8sSecretName");
        let mut certificates = Vec::new();
        for index in 0..reader.elements("shenyu.netty.http.sni.certificates") {
            let domain = reader.member("shenyu.netty.http.sni.certificates[].domain", index);
            let chain =
                reader.member("shenyu.netty.http.sni.certificates[].keyCertChainFile", index);
            let key = reader.member("shenyu.netty.http.sni.certificates[].keyFile", index);
            match (domain, chain, key) {
                (Some(domain), Some(chain_file), Some(key_file)) => {
                    certificates.push(SniCertificate { domain, chain_file, key_file });
                }
                _ => reader.reject(
                    "shenyu.netty.http.sni.enabled",
                    format!(
                        "expected domain, keyCertChainFile and keyFile in \
                         shenyu.netty.http.sni.certificates[{index}]"
                    ),
                ),
            }
        }
        if !enabled {
            return None;
        }
        if mode == SniMode::Manual && certificates.is_empty() {
            reader.reject(
                "shenyu.netty.http.sni.enabled",
                "expected at least one entry in shenyu.netty.http.sni.certificates",
            );
        }
        Some(Self { mode, default_secret: namespace.zip(name), certificates })
    }
}
