//! The protocols by which services register, and what the reference makes of each.

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Http,
    Websocket,
    Grpc,
    Dubbo,
    Sofa,
    Tars,
}

impl Kind {
    /// All words that [`Kind::parse`] takes, in a sentence.
    pub(super) const WORDS: &'static str = "http, websocket, grpc, dubbo, sofa or tars";

    /// Reads `rpcType`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "http" => Self::Http,
            "websocket" => Self::Websocket,
            "grpc" => Self::Grpc,
            "dubbo" => Self::Dubbo,
            "sofa" => Self::Sofa,
            "tars" => Self::Tars,
            _ => return None,
        })
    }

    /// The word.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Websocket => "websocket",
            Self::Grpc => "grpc",
            Self::Dubbo => "dubbo",
            Self::Sofa => "sofa",
            Self::Tars => "tars",
        }
    }

    /// The plugin that serves it.
    pub(super) const fn plugin(self) -> &'static str {
        match self {
            Self::Http => "divide",
            other => other.word(),
        }
    }

    /// The settings of its rules.
    pub(super) const fn rule_handle(self) -> &'static str {
        match self {
            Self::Http => {
                "{\"loadBalance\":\"random\",\"retryStrategy\":\"current\",\"retry\":3,\
                 \"timeout\":3000,\"headerMaxSize\":0,\"requestMaxSize\":0}"
            }
            Self::Dubbo | Self::Sofa => {
                "{\"retries\":0,\"loadBalance\":\"random\",\"timeout\":3000}"
            }
            Self::Websocket => "{\"loadBalance\":\"random\",\"retry\":0,\"timeout\":3000}",
            Self::Grpc | Self::Tars => "",
        }
    }

    /// Whether its paths are cut or kept by the plugin `contextPath`; only then does a description
    /// have to be asked for.
    pub(super) const fn is_by_path(self) -> bool {
        matches!(self, Self::Http | Self::Websocket)
    }

    /// Whether a description is found by service and method, not by path.
    pub(super) const fn is_by_method(self) -> bool {
        matches!(self, Self::Sofa | Self::Tars)
    }
}
