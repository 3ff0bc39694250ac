//! What conditions do to requests, row by row.

mod explain;
mod guard;
mod operators;
mod patterns;
mod properties;
mod sources;
mod validation;

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::{Timestamp, tz::TimeZone};

use super::{
    Compiled, Compiler, ContextField, RequestView, header_text, headers_cookie, query_value,
};
use crate::model::Condition;

/// A request made of its parts.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) method: String,
    pub(crate) domain: String,
    pub(crate) ip: String,
    pub(crate) headers: HeaderMap,
    pub(crate) now: Timestamp,
}

impl Request {
    pub(crate) fn get(target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            path: path.to_owned(),
            query: query.to_owned(),
            method: "GET".to_owned(),
            domain: "gw.test".to_owned(),
            ip: "127.0.0.1".to_owned(),
            headers: HeaderMap::new(),
            now: "2026-11-30T12:00:00Z".parse().unwrap(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl RequestView for Request {
    fn effective_path(&self) -> &str {
        &self.path
    }

    fn header(&self, name: &HeaderName) -> Option<Cow<'_, str>> {
        self.headers.get(name).map(header_text)
    }

    fn query(&self, name: &str) -> Option<Cow<'_, str>> {
        query_value(&self.query, name)
    }

    fn cookie(&self, name: &str) -> Option<Cow<'_, str>> {
        headers_cookie(&self.headers, name)
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn domain(&self) -> &str {
        &self.domain
    }

    fn client_ip(&self) -> &str {
        &self.ip
    }

    fn client_host(&self) -> &str {
        &self.ip
    }

    fn context_field(&self, field: ContextField) -> Option<Cow<'_, str>> {
        match field {
            ContextField::Method | ContextField::Path => Some(Cow::Borrowed(&self.path)),
            ContextField::HttpMethod => Some(Cow::Borrowed(&self.method)),
            ContextField::RpcType => Some(Cow::Borrowed("http")),
            ContextField::Module | ContextField::ContextPath | ContextField::RealUrl => None,
        }
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

/// A condition; a name or value of `null` is an absent one.
pub(crate) fn condition(param_type: &str, operator: &str, name: &str, value: &str) -> Condition {
    let optional = |text: &str| (text != "null").then(|| text.to_owned());
    Condition {
        param_type: param_type.to_owned(),
        operator: operator.to_owned(),
        param_name: optional(name),
        param_value: optional(value),
    }
}

pub(crate) fn compiler() -> Compiler {
    Compiler::new(TimeZone::get("Asia/Shanghai").unwrap())
}

fn compile(conditions: &[Condition]) -> Compiled {
    compiler().compile(0, conditions)
}

/// Whether the one condition, which must be usable, holds for the request.
#[track_caller]
fn holds(condition: &Condition, request: &Request) -> bool {
    let compiled = compile(std::slice::from_ref(condition));
    assert_eq!(compiled.faults, [], "{condition:?}");
    compiled.conditions.matches(request)
}
