//! A request as conditions see it.

use std::borrow::Cow;

use http::HeaderName;
use jiff::Timestamp;

use super::RequestContext;
use crate::condition::{ContextField, RequestView, header_text, headers_cookie, query_value};

/// The view of a request at one moment of the chain: the effective path is fixed, everything else is
/// looked up when asked.
pub(crate) struct View<'a> {
    cx: &'a RequestContext,
    path: Cow<'a, str>,
}

impl<'a> View<'a> {
    pub(crate) fn new(cx: &'a RequestContext) -> Self {
        Self { cx, path: cx.effective_path() }
    }

    /// The same request as a guard sees it on the canonical form of its path.
    pub(crate) fn canonical(cx: &'a RequestContext, path: &'a str) -> Self {
        Self { cx, path: Cow::Borrowed(path) }
    }
}

impl RequestView for View<'_> {
    fn effective_path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &HeaderName) -> Option<Cow<'_, str>> {
        self.cx.head.headers.get(name).map(header_text)
    }

    fn query(&self, name: &str) -> Option<Cow<'_, str>> {
        query_value(self.cx.raw_query()?, name)
    }

    fn cookie(&self, name: &str) -> Option<Cow<'_, str>> {
        headers_cookie(&self.cx.head.headers, name)
    }

    fn method(&self) -> &str {
        self.cx.head.method.as_str()
    }

    fn domain(&self) -> &str {
        let host = self.cx.head.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
        let authority = host.or_else(|| self.cx.head.uri.authority().map(|a| a.as_str()));
        let authority = authority.unwrap_or_default();
        match authority.rfind(':') {
            // The colons of a bracketed address are not a port's.
            Some(at) if !authority[at..].contains(']') => &authority[..at],
            _ => authority,
        }
    }

    fn client_ip(&self) -> &str {
        self.cx.client_text()
    }

    fn client_host(&self) -> &str {
        self.client_ip()
    }

    fn context_field(&self, field: ContextField) -> Option<Cow<'_, str>> {
        let metadata = self.cx.metadata.as_deref();
        match field {
            ContextField::Module => Some(match metadata.and_then(|m| m.app_name.as_deref()) {
                Some(app) => Cow::Borrowed(app),
                None => Cow::Borrowed(match self.cx.rpc_type {
                    super::RpcType::WebSocket => "websocket-websocket",
                    super::RpcType::Http | super::RpcType::Other(_) => "divide-http",
                }),
            }),
            ContextField::Method | ContextField::Path => Some(Cow::Borrowed(self.cx.raw_path())),
            ContextField::RpcType => Some(Cow::Borrowed(self.cx.rpc_type.name())),
            ContextField::HttpMethod => Some(Cow::Borrowed(self.cx.head.method.as_str())),
            ContextField::ContextPath => self.cx.context_path.as_deref().map(Cow::Borrowed),
            ContextField::RealUrl => Some(Cow::Borrowed(
                self.cx.real_url.as_deref().unwrap_or_else(|| self.cx.raw_path()),
            )),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.cx.unix_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
