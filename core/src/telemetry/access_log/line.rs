//! One line of the access log.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Version};
use jiff::Timestamp;

use super::mask::push_target;
use crate::chain::{Completion, Observed, Outcome};

/// The form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineFormat {
    /// For people: the request in the shape of the common log format, then `name=value`.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// What a line says.
#[derive(Debug)]
pub struct Line<'a> {
    /// How the request went.
    pub completion: &'a Completion,
    /// What is known of it beside that.
    pub observed: &'a Observed,
}

impl Line<'_> {
    /// The line, with its line feed.
    ///
    /// The target is the client's, without scheme and host, cut to 2,048 bytes; values of parameters
    /// whose names say that they are secret are left out. Times are whole microseconds.
    #[must_use]
    pub fn format(&self, format: LineFormat) -> Vec<u8> {
        let mut out = Vec::with_capacity(448);
        match format {
            LineFormat::Text => self.text(&mut out),
            LineFormat::Json => self.json(&mut out),
        }
        out.push(b'\n');
        out
    }

    fn began(&self) -> Timestamp {
        let began = SystemTime::now() - self.completion.elapsed;
        Timestamp::try_from(began).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn method(&self) -> &str {
        // Empty where the server could not read a request.
        if self.completion.readable { self.completion.method.as_str() } else { "-" }
    }

    fn protocol(&self) -> &'static str {
        if self.completion.websocket {
            return "websocket";
        }
        match self.observed.version {
            Version::HTTP_2 => "HTTP/2.0",
            Version::HTTP_10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        }
    }

    fn outcome(&self) -> &'static str {
        match self.completion.outcome {
            Outcome::Finished => "finished",
            Outcome::Failed => "failed",
            Outcome::ClientGone => "client_gone",
        }
    }

    fn id(&self) -> Option<&str> {
        // Ids are made of visible ASCII: see `request_id`.
        self.observed.request_id.as_ref().map(HeaderValue::to_str)?.ok()
    }

    fn target(&self, out: &mut Vec<u8>) {
        if self.completion.readable {
            push_target(out, &self.completion.target);
        } else {
            out.push(b'-');
        }
    }

    fn json(&self, out: &mut Vec<u8>) {
        let done = self.completion;
        put(out, format_args!("{{\"time\":\"{:.3}\",\"client\":", self.began()));
        match self.observed.client {
            Some(client) => put(out, format_args!("\"{client}\"")),
            None => out.extend_from_slice(b"null"),
        }
        // Methods are tokens and targets have no quotes and backslashes left: nothing to escape.
        put(out, format_args!(",\"method\":\"{}\",\"target\":\"", self.method()));
        self.target(out);
        put(out, format_args!("\",\"protocol\":\"{}\",\"status\":", self.protocol()));
        match done.status {
            Some(status) => put(out, format_args!("{}", status.as_u16())),
            None => out.extend_from_slice(b"null"),
        }
        put(out, format_args!(",\"outcome\":\"{}\",\"reason\":", self.outcome()));
        optional(out, done.reason.map(crate::error::Reason::code));
        out.extend_from_slice(b",\"upstream\":");
        match &done.upstream {
            Some(upstream) => put(out, format_args!("\"{}\"", upstream.address)),
            None => out.extend_from_slice(b"null"),
        }
        put(out, format_args!(",\"attempts\":{},\"notRetried\":", done.attempts));
        optional(out, done.not_retried.map(crate::chain::NotRetried::code));
        put(
            out,
            format_args!(
                ",\"totalUs\":{},\"headUs\":{},\"upstreamUs\":{},\"bytesIn\":{},\
                 \"bytesOut\":{},\"requestId\":",
                done.elapsed.as_micros(),
                Micros(done.head_elapsed, "null"),
                Micros(done.upstream_elapsed, "null"),
                done.request_bytes,
                done.response_bytes,
            ),
        );
        optional(out, self.id());
        out.push(b'}');
    }

    fn text(&self, out: &mut Vec<u8>) {
        let done = self.completion;
        put(
            out,
            format_args!(
                "{:.3} {} \"{} ",
                self.began(),
                Client(self.observed.client),
                self.method()
            ),
        );
        self.target(out);
        put(out, format_args!(" {}\" ", self.protocol()));
        match done.status {
            Some(status) => put(out, format_args!("{}", status.as_u16())),
            None => out.push(b'-'),
        }
        put(
            out,
            format_args!(
                " outcome={} reason={} upstream=",
                self.outcome(),
                done.reason.map_or("-", crate::error::Reason::code)
            ),
        );
        match &done.upstream {
            Some(upstream) => put(out, format_args!("{}", upstream.address)),
            None => out.push(b'-'),
        }
        put(
            out,
            format_args!(
                " attempts={} not_retried={} total_us={} head_us={} upstream_us={} in={} out={} id={}",
                done.attempts,
                done.not_retried.map_or("-", crate::chain::NotRetried::code),
                done.elapsed.as_micros(),
                Micros(done.head_elapsed, "-"),
                Micros(done.upstream_elapsed, "-"),
                done.request_bytes,
                done.response_bytes,
                self.id().unwrap_or("-"),
            ),
        );
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes everything");
}

/// A text without characters that JSON escapes, or `null`.
fn optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => put(out, format_args!("\"{text}\"")),
        None => out.extend_from_slice(b"null"),
    }
}

struct Micros(Option<Duration>, &'static str);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(time) => time.as_micros().fmt(f),
            None => f.write_str(self.1),
        }
    }
}

struct Client(Option<IpAddr>);

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(client) => client.fmt(f),
            None => f.write_str("-"),
        }
    }
}
