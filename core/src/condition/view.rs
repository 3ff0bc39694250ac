//! What a condition may read of a request.

use std::borrow::Cow;

use http::HeaderName;
use jiff::Timestamp;

/// The request as conditions see it.
///
/// Implementors look values up when asked and keep nothing ready that may not be wanted: most
/// conditions read the path alone. The helpers [`query_value`](super::query_value),
/// [`headers_cookie`](super::headers_cookie) and [`header_text`](super::header_text) do the reading
/// over raw texts.
pub trait RequestView {
    /// The path that plugins match on at this moment: raw, percent-encoded, without the query.
    fn effective_path(&self) -> &str;

    /// The first value of a header; `None` when absent.
    fn header(&self, name: &HeaderName) -> Option<Cow<'_, str>>;

    /// The first value of a query parameter, decoded. A name without `=` counts as absent, `name=`
    /// is the empty text.
    fn query(&self, name: &str) -> Option<Cow<'_, str>>;

    /// The first value of a cookie; names are case-sensitive.
    fn cookie(&self, name: &str) -> Option<Cow<'_, str>>;

    /// The request method as sent.
    fn method(&self) -> &str;

    /// The host the request names, without port; empty when it names none.
    fn domain(&self) -> &str;

    /// The client's address as text, without port.
    fn client_ip(&self) -> &str;

    /// The client's host as text: its address unless something better is known.
    fn client_host(&self) -> &str;

    /// A field of the request context.
    fn context_field(&self, field: ContextField) -> Option<Cow<'_, str>>;

    /// The time of the request. One request should always get the same answer.
    fn now(&self) -> Timestamp;
}

/// The context fields that conditions of type `post` can name.
///
/// Source: executed on ShenYu 2.7.1; despite its name the type never reads the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContextField {
    /// `module`: the context path, or the application of the metadata.
    Module,
    /// `method`: the path within the module, or the method of the metadata.
    Method,
    /// `rpcType`: `http`, `websocket`, …
    RpcType,
    /// `httpMethod`: the request method.
    HttpMethod,
    /// `path`: the raw path.
    Path,
    /// `contextPath`: what the contextPath plugin cut off.
    ContextPath,
    /// `realUrl`: the path that goes upstream.
    RealUrl,
}

impl ContextField {
    /// Every field, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Module,
        Self::Method,
        Self::RpcType,
        Self::HttpMethod,
        Self::Path,
        Self::ContextPath,
        Self::RealUrl,
    ];

    /// The name used in conditions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Method => "method",
            Self::RpcType => "rpcType",
            Self::HttpMethod => "httpMethod",
            Self::Path => "path",
            Self::ContextPath => "contextPath",
            Self::RealUrl => "realUrl",
        }
    }

    /// The field of that name, spelled exactly.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}
