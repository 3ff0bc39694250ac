//! The question as people and programs ask it.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Uri};
use serde_json::{Map, Value};

use super::{Expect, Request, curl};
use crate::mask::{MASK, is_secret, is_secret_header};
use crate::model::MAX_ID_BYTES;

/// What a question may hold.
const MEMBERS: &str = "curl, method, url, headers, body, clientIp or expect";

/// The most header lines of a question.
const MAX_HEADERS: usize = 1_000;

/// What is wrong with a question: field, value, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault {
    /// The member: `curl`, `headers.X-Env`, `expect.ruleId`, …
    pub field: String,
    /// The place in a curl line: a character, from 1.
    pub at: Option<usize>,
    /// What was found, shortened.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

impl RequestFault {
    /// The longest value that is repeated, in characters.
    const MAX_VALUE: usize = 120;

    /// A fault of a member.
    pub(super) fn new(field: impl Into<String>, value: &str, expected: impl Into<String>) -> Self {
        let mut shown: String = value.chars().take(Self::MAX_VALUE).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Self { field: field.into(), at: None, value: shown, expected: expected.into() }
    }
}

impl fmt::Display for RequestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, expected, .. } = self;
        f.write_str(field)?;
        if let Some(at) = self.at {
            write!(f, ", character {at}")?;
        }
        let value = if value.is_empty() { "nothing" } else { value };
        write!(f, ": {value} is not {expected}")
    }
}

impl std::error::Error for RequestFault {}

/// Reads a question: a JSON object with `curl`, or with `url` and perhaps `method`, `headers` and
/// `body`; both perhaps with `clientIp` and `expect`. `peer` is the client's address where the question
/// names none.
///
/// # Errors
/// The first member that cannot be used.
pub fn read(json: &[u8], peer: IpAddr) -> Result<Request, RequestFault> {
    let value: Value = serde_json::from_slice(json)
        .map_err(|error| RequestFault::new("request body", &error.to_string(), "a JSON object"))?;
    let Value::Object(members) = &value else {
        return Err(fault("request body", &value, "a JSON object"));
    };
    let known = ["curl", "method", "url", "headers", "body", "clientIp", "expect"];
    if let Some((name, value)) = members.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(fault(name, value, &format!("a member of a question, which are {MEMBERS}")));
    }
    let peer = match text(members, "clientIp")? {
        None => peer,
        Some(text) => text.parse().map_err(|_| {
            RequestFault::new("clientIp", text, "an IPv4 or IPv6 address without a port")
        })?,
    };
    let mut request = match text(members, "curl")? {
        Some(line) => {
            let besides = ["method", "url", "headers", "body"];
            if let Some((name, value)) = members
                .iter()
                .find(|(name, value)| besides.contains(&name.as_str()) && !value.is_null())
            {
                return Err(fault(name, value, "to be given beside curl, which says it already"));
            }
            curl::parse(line, peer)?
        }
        None => of_members(members, peer)?,
    };
    request.expect = expect(members)?;
    Ok(request)
}

/// The question in members of its own.
fn of_members(members: &Map<String, Value>, peer: IpAddr) -> Result<Request, RequestFault> {
    let Some(url) = text(members, "url")? else {
        let expected = "an address such as http://host/path, or a curl line in the member curl";
        return Err(RequestFault::new("url", "", expected));
    };
    let method = match text(members, "method")? {
        None => Method::GET,
        Some(text) => read_method("method", text)?,
    };
    let mut draft = Draft::new("url", url)?;
    match members.get("headers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(headers)) => {
            for (name, value) in headers {
                let field = format!("headers.{name}");
                let all = match value {
                    Value::Array(all) => all.as_slice(),
                    one => std::slice::from_ref(one),
                };
                for value in all {
                    let expected = "a text or a list of texts";
                    let Some(value) = scalar(value) else {
                        let shown =
                            if is_secret(name) { MASK.to_owned() } else { value.to_string() };
                        return Err(RequestFault::new(&field, &shown, expected));
                    };
                    draft.header(&field, name, &value)?;
                }
            }
        }
        Some(Value::Array(lines)) => {
            for (at, line) in lines.iter().enumerate() {
                let field = format!("headers[{at}]");
                let expected = "an object with the texts name and value";
                let member = |name| line.get(name).and_then(Value::as_str);
                let (Some(name), Some(value)) = (member("name"), member("value")) else {
                    return Err(fault(&field, line, expected));
                };
                draft.header(&field, name, value)?;
            }
        }
        Some(other) => {
            return Err(fault(
                "headers",
                other,
                "an object of names and values, or a list of them",
            ));
        }
    }
    let body = text(members, "body")?.unwrap_or_default();
    draft.finish(method, Bytes::copy_from_slice(body.as_bytes()), peer)
}

fn expect(members: &Map<String, Value>) -> Result<Option<Expect>, RequestFault> {
    let of = match members.get("expect") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(of)) => of,
        Some(other) => {
            return Err(fault("expect", other, "an object with ruleId or selectorId"));
        }
    };
    if let Some((name, value)) =
        of.iter().find(|(name, _)| !matches!(name.as_str(), "ruleId" | "selectorId"))
    {
        return Err(fault(&format!("expect.{name}"), value, "ruleId or selectorId"));
    }
    let id = |name: &str| {
        let field = format!("expect.{name}");
        match of.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                match scalar(value).filter(|id| (1..=MAX_ID_BYTES).contains(&id.len())) {
                    Some(id) => Ok(Some(id)),
                    None => Err(fault(&field, value, "an id")),
                }
            }
        }
    };
    match (id("ruleId")?, id("selectorId")?) {
        (Some(id), selector) => Ok(Some(Expect::Rule { id, selector })),
        (None, Some(id)) => Ok(Some(Expect::Selector(id))),
        (None, None) => Err(RequestFault::new("expect", "", "an object with ruleId or selectorId")),
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Result<Option<&'m str>, RequestFault> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(fault(name, other, "a text")),
    }
}

/// A text, or a number or boolean as one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn fault(field: &str, value: &Value, expected: &str) -> RequestFault {
    RequestFault::new(field, &value.to_string(), expected)
}

/// Reads a method.
pub(super) fn read_method(field: &str, text: &str) -> Result<Method, RequestFault> {
    Method::from_bytes(text.as_bytes())
        .map_err(|_| RequestFault::new(field, text, "a method such as GET"))
}

/// A request that is put together.
#[derive(Debug)]
pub(super) struct Draft {
    uri: Uri,
    pub(super) headers: HeaderMap,
    host: Option<HeaderValue>,
    pub(super) remarks: Vec<String>,
}

impl Draft {
    /// A request for an address: absolute, or a path.
    pub(super) fn new(field: &str, url: &str) -> Result<Self, RequestFault> {
        let bad = |expected: &str| RequestFault::new(field, url, expected);
        let url = url.split('#').next().unwrap_or_default();
        let uri: Uri = url
            .parse()
            .map_err(|_| bad("an address such as http://host/path?query, percent-encoded"))?;
        let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let host = match (uri.scheme_str(), uri.authority()) {
            (Some("http" | "https" | "ws" | "wss"), Some(authority)) => {
                let host = authority.as_str().rsplit('@').next().unwrap_or_default();
                Some(HeaderValue::from_str(host).map_err(|_| bad("an address with a host"))?)
            }
            (None, None) if target.starts_with('/') => None,
            _ => return Err(bad("an address with http:// or https://, or a path with /")),
        };
        let slash = if target.starts_with('/') { "" } else { "/" };
        let uri = format!("{slash}{target}").parse().map_err(|_| bad("an address with a path"))?;
        Ok(Self { uri, headers: HeaderMap::new(), host, remarks: Vec::new() })
    }

    /// Adds a header line.
    pub(super) fn header(
        &mut self,
        field: &str,
        name: &str,
        value: &str,
    ) -> Result<(), RequestFault> {
        let parsed = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| RequestFault::new(field, name, "the name of a header"))?;
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| {
            let shown = if is_secret_header(&parsed) { MASK } else { value };
            RequestFault::new(field, shown, "the value of a header: no control characters")
        })?;
        if self.headers.len() == MAX_HEADERS {
            let expected = format!("one of at most {MAX_HEADERS} headers");
            return Err(RequestFault::new(field, name, expected));
        }
        self.headers.append(parsed, value);
        Ok(())
    }

    /// The request as a client would send it.
    pub(super) fn finish(
        mut self,
        method: Method,
        body: Bytes,
        peer: IpAddr,
    ) -> Result<Request, RequestFault> {
        if !self.headers.contains_key(HOST) {
            let host = self.host.take().unwrap_or_else(|| {
                self.remarks.push("no host is named: localhost is taken".to_owned());
                HeaderValue::from_static("localhost")
            });
            self.headers.insert(HOST, host);
        }
        let framed = [CONTENT_LENGTH, TRANSFER_ENCODING];
        if !body.is_empty() && !framed.iter().any(|name| self.headers.contains_key(name)) {
            self.headers.insert(CONTENT_LENGTH, body.len().into());
        }
        let Self { uri, headers, remarks, .. } = self;
        Ok(Request { method, uri, headers, body, peer, expect: None, remarks })
    }
}
