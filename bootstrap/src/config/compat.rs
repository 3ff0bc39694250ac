//! `shenyu.compat` and the keys that override one of its rows.

use longmen_core::config::{Cidr, KeySpec, Kind, Notice, Reader, Section};
use longmen_core::setting_words;

/// Which of the two columns of differences that a client can see is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compat {
    /// As ShenYu answers, so that its clients see no difference.
    Shenyu,
    /// As the HTTP standards and other proxies have it.
    Standard,
}

setting_words!(Compat { "shenyu" => Self::Shenyu, "standard" => Self::Standard });

/// What happens to the body of a GET or HEAD request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetBody {
    /// Dropped, and its `Content-Length` with it.
    Drop,
    /// Forwarded as of any other method.
    Forward,
}

setting_words!(GetBody { "drop" => Self::Drop, "forward" => Self::Forward });

/// What happens to an `rpc_type` header that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcTypeHeader {
    /// Taken for types that are served, else 400.
    Honour,
    /// No meaning.
    Ignore,
}

setting_words!(RpcTypeHeader { "honour" => Self::Honour, "honor" => Self::Honour, "ignore" => Self::Ignore });

/// What happens to `X-Forwarded-*` and `Via`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardedMode {
    /// None added; the client's are passed on.
    Off,
    /// Appended to those of trusted peers; those of others are replaced.
    Append,
    /// Always replaced.
    Replace,
}

setting_words!(ForwardedMode {
    "off" => Self::Off, "append" => Self::Append, "replace" => Self::Replace,
});

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Compatibility",
    about: "`shenyu.compat` chooses between two columns of differences that a client can see; each \
            row has a key of its own that overrides the switch. Absent means `shenyu`, so that a \
            migrated file keeps its clients; the file we ship says `standard`.",
    keys: &[
        KeySpec::new(
            "shenyu.compat",
            Kind::Choice(Compat::WORDS),
            "shenyu",
            "The column in force.",
        ),
        KeySpec::new(
            "shenyu.errorStatus",
            Kind::Choice(Compat::WORDS),
            "",
            "Statuses of envelope answers and of upstream failures.",
        )
        .computed("as `shenyu.compat`"),
        KeySpec::new(
            "shenyu.getBody",
            Kind::Choice(GetBody::WORDS),
            "",
            "The body of GET and HEAD requests.",
        )
        .computed("`drop` under `shenyu`, `forward` under `standard`"),
        KeySpec::new(
            "shenyu.rpcTypeHeader",
            Kind::Choice(RpcTypeHeader::WORDS),
            "",
            "The `rpc_type` header of a client.",
        )
        .computed("`honour` under `shenyu`, `ignore` under `standard`"),
        KeySpec::new(
            "shenyu.normalizeQuery",
            Kind::Bool,
            "false",
            "Whether the query is decoded and encoded again on its way, as ShenYu does.",
        ),
        KeySpec::new(
            "shenyu.retryNonIdempotent",
            Kind::Bool,
            "false",
            "Whether POST and PATCH may be sent again after bytes of them were sent.",
        ),
        KeySpec::new(
            "shenyu.forwarded.mode",
            Kind::Choice(ForwardedMode::WORDS),
            "",
            "What becomes of `X-Forwarded-For`, `-Proto`, `-Host` and `Via`.",
        )
        .computed("`off` under `shenyu`, `append` under `standard`"),
        KeySpec::new(
            "shenyu.forwarded.trusted",
            Kind::List(&Kind::Network),
            "",
            "Networks of proxies in front whose forwarding headers are believed; the client's address is the right-most one outside them.",
        ),
        KeySpec::new(
            "shenyu.requestId.upstream",
            Kind::Bool,
            "",
            "Whether the upstream is sent `X-Request-Id` and `traceparent`.",
        )
        .computed("false under `shenyu`, true under `standard`"),
        KeySpec::new(
            "shenyu.requestId.response",
            Kind::Bool,
            "false",
            "Whether answers carry `X-Request-Id`.",
        ),
    ],
};

/// The rows in force, the switch and its overrides applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatConfig {
    /// The switch itself, for what has no key of its own.
    pub mode: Compat,
    /// Statuses of envelope answers and of upstream failures.
    pub error_status: Compat,
    /// The body of GET and HEAD requests.
    pub get_body: GetBody,
    /// The `rpc_type` header of a client.
    pub rpc_type_header: RpcTypeHeader,
    /// Whether the query is decoded and encoded again.
    pub normalize_query: bool,
    /// Whether non-idempotent methods may be sent again.
    pub retry_non_idempotent: bool,
    /// Whether the upstream is sent the request id and `traceparent`.
    pub request_id_upstream: bool,
    /// Whether answers carry the request id.
    pub request_id_response: bool,
    /// What becomes of forwarding headers.
    pub forwarded_mode: ForwardedMode,
    /// Networks whose forwarding headers are believed; empty: nobody's.
    pub trusted_proxies: Vec<Cidr>,
}

impl CompatConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mode = reader.get("shenyu.compat");
        let standard = mode == Compat::Standard;
        let retry_non_idempotent = reader.get("shenyu.retryNonIdempotent");
        if retry_non_idempotent {
            reader.note(Notice::warn(
                "shenyu.retryNonIdempotent is on: an upstream may execute a POST twice",
            ));
        }
        Self {
            mode,
            error_status: reader.optional("shenyu.errorStatus").unwrap_or(mode),
            get_body: reader.optional("shenyu.getBody").unwrap_or(if standard {
                GetBody::Forward
            } else {
                GetBody::Drop
            }),
            rpc_type_header: reader.optional("shenyu.rpcTypeHeader").unwrap_or(if standard {
                RpcTypeHeader::Ignore
            } else {
                RpcTypeHeader::Honour
            }),
            normalize_query: reader.get("shenyu.normalizeQuery"),
            retry_non_idempotent,
            request_id_upstream: reader.optional("shenyu.requestId.upstream").unwrap_or(standard),
            request_id_response: reader.get("shenyu.requestId.response"),
            forwarded_mode: reader.optional("shenyu.forwarded.mode").unwrap_or(if standard {
                ForwardedMode::Append
            } else {
                ForwardedMode::Off
            }),
            trusted_proxies: reader.list("shenyu.forwarded.trusted"),
        }
    }
}
