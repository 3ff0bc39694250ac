//! A curl line as people paste it: from a shell's history, or copied from a browser.

mod options;

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, REFERER, USER_AGENT,
};

use self::options::{Meaning, find_long, find_short};
use super::input::{Draft, read_method};
use super::words::{Word, fault_at, words};
use super::{Request, RequestFault};

/// What the line says, as far as it was read.
#[derive(Debug, Default)]
struct Line {
    url: Option<Word>,
    method: Option<Word>,
    headers: Vec<Word>,
    data: Vec<Vec<u8>>,
    json: Vec<u8>,
    /// Names and values for the query.
    query: Vec<String>,
    cookies: Vec<String>,
    agent: Option<Word>,
    referer: Option<Word>,
    authorization: Option<String>,
    has_data: bool,
    has_json: bool,
    form: bool,
    upload: bool,
    get: bool,
    head: bool,
    compressed: bool,
    path_as_is: bool,
    no_globs: bool,
    remarks: Vec<String>,
}

/// Reads a curl line into the request that curl would send. `peer` is the client's address.
///
/// Options that change nothing about the request are passed over. What stands in files is not known.
///
/// # Errors
/// A line that is no single curl command, with the place of what cannot be used.
pub fn parse(line: &str, peer: IpAddr) -> Result<Request, RequestFault> {
    let mut words = words(line)?.into_iter();
    let first = words.next();
    let is_curl = |word: &Word| {
        let name = word.text.rsplit(['/', '\\']).next().unwrap_or_default();
        name == "curl" || name == "curl.exe"
    };
    match &first {
        Some(word) if is_curl(word) => {}
        Some(word) => return Err(fault_at(word.at, &word.text, "the word curl, which begins it")),
        None => return Err(fault_at(1, "", "a curl line, such as curl http://host/path")),
    }
    let mut line = Line::default();
    while let Some(word) = words.next() {
        if let Some(name) = word.text.strip_prefix("--").filter(|name| !name.is_empty()) {
            line.long(name, &word, &mut words)?;
        } else if word.text.len() > 1 && word.text.starts_with('-') {
            line.short(&word, &mut words)?;
        } else if word.text != "--" {
            line.address(word)?;
        }
    }
    line.request(peer)
}

impl Line {
    fn long(
        &mut self,
        name: &str,
        word: &Word,
        words: &mut impl Iterator<Item = Word>,
    ) -> Result<(), RequestFault> {
        let Some(meaning) = find_long(name) else { return Err(unknown(word, &word.text)) };
        let value = if meaning.takes_value() { Some(value_of(word, words)?) } else { None };
        self.option(meaning, word, value)
    }

    /// One or several letters, the last perhaps with its value.
    fn short(
        &mut self,
        word: &Word,
        words: &mut impl Iterator<Item = Word>,
    ) -> Result<(), RequestFault> {
        for (at, letter) in word.text.char_indices().skip(1) {
            let Some(meaning) = find_short(letter) else {
                return Err(unknown(word, &format!("-{letter}")));
            };
            if !meaning.takes_value() {
                self.option(meaning, word, None)?;
                continue;
            }
            let rest = &word.text[at + letter.len_utf8()..];
            let value = if rest.is_empty() {
                value_of(word, words)?
            } else {
                Word { text: rest.to_owned(), at: word.at }
            };
            return self.option(meaning, word, Some(value));
        }
        Ok(())
    }

    fn option(
        &mut self,
        meaning: Meaning,
        word: &Word,
        value: Option<Word>,
    ) -> Result<(), RequestFault> {
        let value = value.unwrap_or_else(|| Word { text: String::new(), at: word.at });
        match meaning {
            Meaning::Nothing | Meaning::NothingWithValue => {}
            Meaning::Refused(expected) => return Err(fault_at(word.at, &word.text, expected)),
            Meaning::Method => self.method = Some(value),
            Meaning::Address => self.address(value)?,
            Meaning::Header => self.headers.push(value),
            Meaning::Data | Meaning::Binary => self.data(&value.text, true),
            Meaning::RawData => self.data(&value.text, false),
            Meaning::EncodedData => {
                self.has_data = true;
                match encoded(&value.text) {
                    Some(text) => self.data.push(text.into_bytes()),
                    None => self.in_a_file("the body"),
                }
            }
            Meaning::Query => match encoded(&value.text) {
                Some(text) => self.query.push(text),
                None => self.in_a_file("the query"),
            },
            Meaning::Json => {
                (self.has_data, self.has_json) = (true, true);
                if value.text.starts_with('@') {
                    self.in_a_file("the body");
                } else {
                    self.json.extend_from_slice(value.text.as_bytes());
                }
            }
            Meaning::Form => {
                self.form = true;
                self.remark("a form is sent, the length of which is not known");
            }
            Meaning::Upload => {
                self.upload = true;
                self.in_a_file("the body");
            }
            Meaning::Cookie if value.text.contains('=') => self.cookies.push(value.text),
            Meaning::Cookie => self.in_a_file("cookies"),
            Meaning::Agent => self.agent = Some(value),
            Meaning::Referer => self.referer = Some(value),
            Meaning::User => self.authorization = Some(basic(&value.text)),
            Meaning::Bearer => self.authorization = Some(format!("Bearer {}", value.text)),
            Meaning::Get => self.get = true,
            Meaning::Head => self.head = true,
            Meaning::Compressed => self.compressed = true,
            Meaning::PathAsIs => self.path_as_is = true,
            Meaning::NoGlobs => self.no_globs = true,
        }
        Ok(())
    }

    fn data(&mut self, text: &str, files: bool) {
        self.has_data = true;
        if files && text.starts_with('@') {
            self.in_a_file("the body");
        } else {
            self.data.push(text.as_bytes().to_vec());
        }
    }

    fn in_a_file(&mut self, what: &str) {
        self.remark(&format!("{what}: what is in a file is not known here"));
    }

    fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|known| known == text) {
            self.remarks.push(text.to_owned());
        }
    }

    fn address(&mut self, word: Word) -> Result<(), RequestFault> {
        if self.url.is_some() {
            let expected = "the only address: one request can be explained at a time";
            return Err(fault_at(word.at, &word.text, expected));
        }
        self.url = Some(word);
        Ok(())
    }

    fn request(mut self, peer: IpAddr) -> Result<Request, RequestFault> {
        let Some(url) = self.url.take() else {
            return Err(fault_at(1, "", "an address after curl, such as http://host/path"));
        };
        let method = self.method()?;
        let mut body: Vec<u8> = self.data.join(&b'&');
        body.extend_from_slice(&self.json);
        if self.get {
            // The data go with the address.
            if !body.is_empty() {
                self.query.push(String::from_utf8_lossy(&body).into_owned());
            }
            body.clear();
        }
        let address = self.whole_address(&url)?;
        let at_url = |fault| RequestFault { at: Some(url.at), ..fault };
        let mut draft = Draft::new("curl", &address).map_err(at_url)?;
        for header in &self.headers {
            add_header(&mut draft, header)?;
        }
        self.defaults(&mut draft, &url)?;
        draft.remarks = std::mem::take(&mut self.remarks);
        draft.finish(method, Bytes::from(body), peer)
    }

    fn method(&self) -> Result<Method, RequestFault> {
        Ok(match &self.method {
            Some(word) => {
                let at = |fault| RequestFault { at: Some(word.at), ..fault };
                read_method("curl", &word.text).map_err(at)?
            }
            None if self.head => Method::HEAD,
            None if self.get => Method::GET,
            None if self.has_data || self.form => Method::POST,
            None if self.upload => Method::PUT,
            None => Method::GET,
        })
    }

    /// The address as curl sends it.
    fn whole_address(&self, url: &Word) -> Result<String, RequestFault> {
        let text = url.text.split('#').next().unwrap_or_default();
        let (scheme, rest) = match text.split_once("://") {
            Some(parts) => parts,
            None if text.starts_with('/') => return Ok(self.with_query(text)),
            None => ("http", text),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let globs = [('{', '}'), ('[', ']')];
        let several = globs.iter().any(|(open, close)| {
            target.find(*open).is_some_and(|at| target[at..].contains(*close))
        });
        if several && !self.no_globs {
            let expected = "one address: curl makes several of it, and takes it as it is with -g";
            return Err(fault_at(url.at, &url.text, expected));
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (target, String::new()),
        };
        let path = if path.is_empty() { "/" } else { path };
        let path = if self.path_as_is { path.to_owned() } else { without_dots(path) };
        Ok(self.with_query(&format!("{scheme}://{authority}{path}{query}")))
    }

    fn with_query(&self, address: &str) -> String {
        let mut text = address.to_owned();
        for one in &self.query {
            text.push(if text.contains('?') { '&' } else { '?' });
            text.push_str(one);
        }
        text
    }

    /// The headers that curl sends by itself, where the line does not say otherwise.
    fn defaults(&mut self, draft: &mut Draft, url: &Word) -> Result<(), RequestFault> {
        let asked: Vec<String> =
            self.headers.iter().filter_map(|word| name_of(&word.text)).collect();
        let mut put = |name: HeaderName, word: &Word, value: &str| {
            if asked.iter().any(|asked| asked.eq_ignore_ascii_case(name.as_str())) {
                return Ok(());
            }
            let place = |fault| RequestFault { at: Some(word.at), ..fault };
            draft.header("curl", name.as_str(), value).map_err(place)
        };
        let here = |text: &str| Word { text: text.to_owned(), at: url.at };
        match self.agent.take().unwrap_or_else(|| here("curl/8")) {
            none if none.text.is_empty() => {}
            agent => put(USER_AGENT, &agent, &agent.text)?,
        }
        let accept = if self.has_json { "application/json" } else { "*/*" };
        put(ACCEPT, url, accept)?;
        if self.compressed {
            put(ACCEPT_ENCODING, url, "deflate, gzip, br, zstd")?;
        }
        if let Some(referer) = self.referer.take().filter(|referer| !referer.text.is_empty()) {
            put(REFERER, &referer, &referer.text)?;
        }
        let authority = url.text.split_once("://").map_or(&*url.text, |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let of_address = authority.rsplit_once('@').map(|(user, _)| basic(user));
        if let Some(authorization) = self.authorization.take().or(of_address) {
            put(AUTHORIZATION, url, &authorization)?;
        }
        if !self.cookies.is_empty() {
            put(COOKIE, url, &self.cookies.join("; "))?;
        }
        let content = match (self.form, self.has_json, self.has_data && !self.get) {
            (true, ..) => Some("multipart/form-data"),
            (_, true, _) => Some("application/json"),
            (.., true) => Some("application/x-www-form-urlencoded"),
            _ => None,
        };
        content.map_or(Ok(()), |content| put(CONTENT_TYPE, url, content))
    }
}

fn value_of(word: &Word, words: &mut impl Iterator<Item = Word>) -> Result<Word, RequestFault> {
    words.next().ok_or_else(|| fault_at(word.at, &word.text, "an option with its value behind it"))
}

fn unknown(word: &Word, option: &str) -> RequestFault {
    fault_at(word.at, option, "an option of curl that is known here")
}

/// The name in `Name: value`, `Name:` or `Name;`.
fn name_of(header: &str) -> Option<String> {
    header.find([':', ';']).map(|at| header[..at].trim().to_owned())
}

/// `Name: value`; `Name;` is one without a value, and `Name:` takes away what curl would send.
fn add_header(draft: &mut Draft, word: &Word) -> Result<(), RequestFault> {
    let at = |fault| RequestFault { at: Some(word.at), ..fault };
    match word.text.split_once(':') {
        Some((_, value)) if value.trim().is_empty() => Ok(()),
        Some((name, value)) => draft.header("curl", name, value).map_err(at),
        None => match word.text.strip_suffix(';') {
            Some(name) => draft.header("curl", name, "").map_err(at),
            None => Err(fault_at(word.at, &word.text, "a header such as Name: value")),
        },
    }
}

fn basic(user: &str) -> String {
    let colon = if user.contains(':') { "" } else { ":" };
    format!("Basic {}", STANDARD.encode(format!("{user}{colon}")))
}

/// `content`, `=content` or `name=content`, the content escaped; `None` for what is in a file.
fn encoded(text: &str) -> Option<String> {
    match (text.find('='), text.find('@')) {
        (None, Some(_)) => None,
        (Some(equals), Some(at)) if at < equals => None,
        (Some(0), _) => Some(escaped(&text[1..])),
        (Some(equals), _) => Some(format!("{}={}", &text[..equals], escaped(&text[equals + 1..]))),
        (None, None) => Some(escaped(text)),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A path without its dot segments.
///
/// Source: RFC 3986, section 5.2.4, as curl does unless `--path-as-is` says otherwise.
fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            other => out.push(other),
        }
    }
    format!("/{}", out.join("/"))
}

#[cfg(test)]
mod tests;
