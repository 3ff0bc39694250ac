//! Which origins are allowed, and what their pages are told.

use std::collections::HashSet;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST,
    HeaderName, HeaderValue, InvalidHeaderValue,
};
use http::{HeaderMap, Request};
use regex::Regex;

use crate::chain::{Connection, Inbound};

/// Headers that are always allowed, in the order in which the reference sends them.
const ALWAYS: [&str; 10] = [
    "authorization",
    "Authorization",
    "credential",
    "X-XSRF-TOKEN",
    "x-requested-with",
    "client",
    "ShenYu-Authorization",
    "Content-Type",
    "token",
    "username",
];

/// The header by which a proxy in front says how the client came.
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What is configured about other origins.
#[derive(Debug, Clone, Default)]
pub struct CrossOptions {
    /// Whether every origin is allowed.
    pub any_origin: bool,
    /// Whether credentials are allowed.
    pub credentials: bool,
    /// Headers allowed besides those that always are.
    pub headers: Vec<String>,
    /// Methods allowed.
    pub methods: Vec<String>,
    /// Headers that a page may read.
    pub expose: Vec<String>,
    /// How long a browser may remember the answer, in seconds.
    pub max_age_seconds: u64,
    /// Origins as `scheme://host[:port]`, or without scheme; `*` for all.
    pub origins: Vec<String>,
    /// A pattern that a whole origin matches.
    pub pattern: Option<String>,
}

/// The same, compiled.
#[derive(Debug)]
pub struct CrossRules {
    any_origin: bool,
    /// With their schemes.
    origins: HashSet<String>,
    /// Without: the scheme is the request's own.
    hosts: HashSet<String>,
    pattern: Option<Regex>,
    /// Everything but the origin, in the order of the reference.
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Options that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CrossFault {
    /// A list holds what cannot stand in a header.
    #[error("a list of shenyu.cross cannot stand in a header: {0}")]
    Value(#[from] InvalidHeaderValue),
    /// The pattern cannot be read.
    #[error("shenyu.cross.allowedOrigin.originRegex: {0}")]
    Pattern(#[from] regex::Error),
}

impl CrossRules {
    /// Compiles options.
    ///
    /// # Errors
    /// A pattern that cannot be read, a list that cannot stand in a header.
    pub fn new(options: &CrossOptions) -> Result<Self, CrossFault> {
        let named = options.origins.iter().map(|origin| origin.trim().to_owned());
        let (origins, hosts) =
            named.filter(|origin| !origin.is_empty()).partition(|origin| origin.contains("://"));
        let any_origin = options.any_origin || options.origins.iter().any(|o| o.trim() == "*");
        let pattern = match &options.pattern {
            Some(pattern) => Some(Regex::new(&format!("^(?:{pattern})$"))?),
            None => None,
        };
        let allowed = ALWAYS.iter().copied().chain(options.headers.iter().map(String::as_str));
        let mut headers = Vec::new();
        for (name, value) in [
            (ACCESS_CONTROL_ALLOW_METHODS, joined(options.methods.iter().map(String::as_str))),
            (ACCESS_CONTROL_MAX_AGE, options.max_age_seconds.to_string()),
            (ACCESS_CONTROL_ALLOW_HEADERS, joined(allowed)),
            (ACCESS_CONTROL_EXPOSE_HEADERS, joined(options.expose.iter().map(String::as_str))),
            (ACCESS_CONTROL_ALLOW_CREDENTIALS, options.credentials.to_string()),
        ] {
            if !value.is_empty() {
                headers.push((name, HeaderValue::try_from(value)?));
            }
        }
        Ok(Self { any_origin, origins, hosts, pattern, headers })
    }

    /// Whether the origin of a request is allowed.
    pub(super) fn allows(&self, origin: &HeaderValue, request: &Request<Inbound>) -> bool {
        if self.any_origin {
            return true;
        }
        let Ok(origin) = origin.to_str() else { return false };
        let by_host = || {
            let own = scheme_of(&request.body().connection, request.headers());
            let host = origin.strip_prefix(own).and_then(|rest| rest.strip_prefix("://"));
            host.is_some_and(|host| self.hosts.contains(host))
        };
        self.origins.contains(origin)
            || (!self.hosts.is_empty() && by_host())
            || self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(origin))
    }

    /// The headers for an allowed origin.
    pub(super) fn headers(&self, origin: HeaderValue) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 8);
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }
}

/// Whether an origin is the one that the request itself was sent to: same scheme, host and port.
pub(super) fn is_own(origin: &HeaderValue, request: &Request<Inbound>) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let own = scheme_of(&request.body().connection, request.headers());
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let default = if own == "https" { ":443" } else { ":80" };
    let without_port = |authority: &str| -> usize {
        authority.strip_suffix(default).map_or(authority.len(), str::len)
    };
    scheme.eq_ignore_ascii_case(own)
        && host.is_some_and(|host| {
            host[..without_port(host)].eq_ignore_ascii_case(&authority[..without_port(authority)])
        })
}

/// The scheme that the client used: what a trusted proxy says, else the connection's own.
fn scheme_of<'a>(connection: &Connection, headers: &'a HeaderMap) -> &'a str {
    if connection.edge.trusts(connection.peer.ip())
        && let Some(said) = headers.get(&X_FORWARDED_PROTO).and_then(|value| value.to_str().ok())
        && said.eq_ignore_ascii_case("https")
    {
        return "https";
    }
    connection.scheme()
}

/// Elements without repetition, joined by commas.
fn joined<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    let mut seen = Vec::new();
    for element in elements.map(str::trim).filter(|element| !element.is_empty()) {
        if !seen.contains(&element) {
            seen.push(element);
        }
    }
    seen.join(",")
}
