//! The configuration in force, as a file: what a gateway starts from when no admin can be reached.
//!
//! Lines of text: a head with format and version, a line about the whole, one line for each object (its
//! group, a space, its JSON as on the wire), and an end with the number of objects and the SHA-256 of
//! everything before it. Written and read line by line, so that a large configuration is never held a
//! second time. A file without its end, or with another hash, is damaged and says nothing.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::part::Position;
use super::state::ConfigState;
use super::upstreams::UpstreamsOfSelector;
use crate::sync::Group;

/// The head of a file; the number is the version of the format.
const HEAD: &str = "longmen-snapshot 1";

/// The longest line that is read: no object on the wire is longer.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// What a file says beside the objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedHead {
    /// The namespace it belongs to.
    pub namespace: String,
    /// The epoch of `version`; empty where a stock admin was the source.
    pub epoch: String,
    /// The version that it is; 0 where a stock admin was the source.
    pub version: u64,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub saved_ms: i64,
}

/// A configuration that was saved.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// What the file says of itself.
    pub head: SavedHead,
    /// The objects.
    pub state: ConfigState,
}

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else, or of another version of the format.
    #[error("expected the first line {HEAD:?}, found {0:?}")]
    Format(String),
    /// It does not end as it should: it was cut off.
    #[error("it is cut off after {0} lines")]
    Cut(u64),
    /// Its hash is another: something in it changed.
    #[error("its checksum does not agree with its content")]
    Checksum,
    /// A line that cannot be read.
    #[error("line {line}: {text}")]
    Line {
        /// Its number, the first is 1.
        line: u64,
        /// What is wrong with it.
        text: String,
    },
}

impl SavedHead {
    /// Where it stands.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { epoch: self.epoch.clone(), version: self.version }
    }
}

/// Writes a configuration.
///
/// # Errors
/// Those of the writer.
pub fn write(out: impl Write, head: &SavedHead, state: &ConfigState) -> io::Result<()> {
    let mut out = Hashed { inner: out, hash: Sha256::new(), objects: 0 };
    writeln!(out, "{HEAD}")?;
    serde_json::to_writer(&mut out, head)?;
    writeln!(out)?;
    for plugin in state.plugins.values() {
        out.object(Group::Plugin, &**plugin)?;
    }
    for selector in state.selectors.values().flat_map(|of_plugin| of_plugin.values()) {
        out.object(Group::Selector, &**selector)?;
    }
    for rule in state.rules.values().flat_map(|of_selector| of_selector.values()) {
        out.object(Group::Rule, &**rule)?;
    }
    for (selector, list) in &state.upstreams {
        out.object(Group::DiscoverUpstream, &(selector, list))?;
    }
    for metadata in state.metadata.values() {
        out.object(Group::MetaData, &**metadata)?;
    }
    for auth in state.app_auth.values() {
        out.object(Group::AppAuth, &**auth)?;
    }
    for selector in state.proxy_selectors.values() {
        out.object(Group::ProxySelector, &**selector)?;
    }
    for key in state.api_keys.values() {
        out.object(Group::AiProxyApiKey, &**key)?;
    }
    let (objects, hash) = (out.objects, hex(out.hash));
    writeln!(out.inner, "end {objects} {hash}")?;
    out.inner.flush()
}

/// Reads a configuration.
///
/// # Errors
/// When the file cannot be read, is something else, or is damaged in any way.
pub fn read(mut input: impl BufRead) -> Result<Saved, SavedError> {
    let mut lines = Lines { input: &mut input, hash: Sha256::new(), number: 0 };
    let first = lines.next()?.ok_or(SavedError::Cut(0))?;
    if first != HEAD {
        return Err(SavedError::Format(first.chars().take(40).collect()));
    }
    let head = lines.next()?.ok_or(SavedError::Cut(1))?;
    let head: SavedHead =
        serde_json::from_str(&head).map_err(|error| lines.wrong(error.to_string()))?;
    let (mut state, mut objects) = (ConfigState::default(), 0_u64);
    loop {
        let before = lines.hash.clone();
        let line = lines.next()?.ok_or(SavedError::Cut(lines.number))?;
        if let Some(end) = line.strip_prefix("end ") {
            return if end == format!("{objects} {}", hex(before)) && lines.next()?.is_none() {
                Ok(Saved { head, state })
            } else {
                Err(SavedError::Checksum)
            };
        }
        take(&mut state, &line).map_err(|text| lines.wrong(text))?;
        objects += 1;
    }
}

fn take(state: &mut ConfigState, line: &str) -> Result<(), String> {
    let (group, json) = line.split_once(' ').ok_or("expected a group and an object")?;
    let group: Group = serde_json::from_value(group.into()).map_err(|error| error.to_string())?;
    match group {
        Group::Plugin => {
            let plugin: Arc<crate::model::Plugin> = object(json)?;
            state.plugins.insert(plugin.name.clone(), plugin);
        }
        Group::Selector => {
            let selector: Arc<crate::model::Selector> = object(json)?;
            let of_plugin = state.selectors.entry(selector.plugin_name.clone()).or_default();
            of_plugin.insert(selector.id.clone(), selector);
        }
        Group::Rule => {
            let rule: Arc<crate::model::Rule> = object(json)?;
            let of_selector = state.rules.entry(rule.selector_id.clone()).or_default();
            of_selector.insert(rule.id.clone(), rule);
        }
        Group::DiscoverUpstream => {
            let (selector, list): (String, UpstreamsOfSelector) =
                serde_json::from_str(json).map_err(|error| error.to_string())?;
            state.upstreams.insert(selector, list);
        }
        Group::MetaData => {
            let metadata: Arc<crate::model::MetaData> = object(json)?;
            state.metadata.insert(metadata.id.clone(), metadata);
        }
        Group::AppAuth => {
            let auth: Arc<crate::model::AppAuth> = object(json)?;
            state.app_auth.insert(auth.app_key.clone(), auth);
        }
        Group::ProxySelector => {
            let selector: Arc<crate::model::ProxySelector> = object(json)?;
            state.proxy_selectors.insert(selector.name.clone(), selector);
        }
        Group::AiProxyApiKey => {
            let key: Arc<crate::model::ProxyApiKey> = object(json)?;
            let place = (key.selector_id.clone(), key.proxy_api_key.clone());
            state.api_keys.insert(place, key);
        }
    }
    Ok(())
}

fn object<T: DeserializeOwned>(json: &str) -> Result<Arc<T>, String> {
    serde_json::from_str(json).map(Arc::new).map_err(|error| error.to_string())
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A writer that hashes what goes through.
struct Hashed<W> {
    inner: W,
    hash: Sha256,
    objects: u64,
}

impl<W: Write> Hashed<W> {
    fn object(&mut self, group: Group, object: &impl Serialize) -> io::Result<()> {
        write!(self, "{group} ")?;
        serde_json::to_writer(&mut *self, object)?;
        self.objects += 1;
        writeln!(self)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Lines with their hash so far.
struct Lines<'a, R> {
    input: &'a mut R,
    hash: Sha256,
    number: u64,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next whole line; `None` at the end, or where the last one is cut off.
    fn next(&mut self) -> Result<Option<String>, SavedError> {
        let mut line = String::new();
        io::Read::take(&mut *self.input, MAX_LINE).read_line(&mut line)?;
        self.hash.update(line.as_bytes());
        self.number += 1;
        Ok(line.strip_suffix('\n').map(str::to_owned))
    }

    fn wrong(&self, text: String) -> SavedError {
        SavedError::Line { line: self.number, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector};
    use crate::model::{Condition, Upstream};

    fn saved() -> Saved {
        let mut state = ConfigState::default();
        let plugin = Plugin { name: "divide".into(), enabled: true, ..Plugin::default() };
        state.plugins.insert("divide".into(), Arc::new(plugin));
        for number in 0..20 {
            let id = format!("s{number}");
            let condition =
                Condition { param_value: Some("a\nb \"ü\"".into()), ..Condition::default() };
            let selector = Selector {
                id: id.clone(),
                plugin_name: "divide".into(),
                condition_list: Some(vec![condition]),
                ..Selector::default()
            };
            state
                .selectors
                .entry("divide".into())
                .or_default()
                .insert(id.clone(), Arc::new(selector));
            let rule = Rule { id: "r".into(), selector_id: id.clone(), ..Rule::default() };
            state.rules.entry(id.clone()).or_default().insert("r".into(), Arc::new(rule));
            let list = UpstreamsOfSelector {
                plugin_name: "divide".into(),
                entries: vec![Upstream { url: "h:1".into(), ..Upstream::default() }],
                watched: number % 2 == 0,
            };
            state.upstreams.insert(id, list);
        }
        state
            .metadata
            .insert("m".into(), Arc::new(MetaData { id: "m".into(), ..Default::default() }));
        let auth = AppAuth { app_key: "k".into(), ..AppAuth::default() };
        state.app_auth.insert("k".into(), Arc::new(auth));
        let proxy = ProxySelector { name: "p".into(), ..ProxySelector::default() };
        state.proxy_selectors.insert("p".into(), Arc::new(proxy));
        let key = ProxyApiKey::default();
        state.api_keys.insert((String::new(), String::new()), Arc::new(key));
        let (namespace, epoch) = ("ns".to_owned(), "e".to_owned());
        Saved { head: SavedHead { namespace, epoch, version: 7, saved_ms: 1 }, state }
    }

    fn bytes(saved: &Saved) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &saved.head, &saved.state).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read() {
        let saved = saved();
        assert_eq!(read(&*bytes(&saved)).unwrap(), saved);
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_says_nothing() {
        let whole = bytes(&saved());
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "cut off after {end} bytes");
        }
    }

    #[test]
    fn a_file_with_any_bit_turned_says_nothing() {
        let whole = bytes(&saved());
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(read(&*damaged).is_err(), "bit {} of byte {at}", at % 8);
        }
        let mut longer = whole;
        longer.extend_from_slice(b"more\n");
        assert!(matches!(read(&*longer), Err(SavedError::Checksum)));
    }

    #[test]
    fn another_format_is_told_by_its_head() {
        let error = read(&b"longmen-snapshot 2\n{}\n"[..]).unwrap_err().to_string();
        assert_eq!(
            error,
            "expected the first line \"longmen-snapshot 1\", found \"longmen-snapshot 2\""
        );
        let error = read(&b"PK\x03\x04 zip"[..]).unwrap_err().to_string();
        assert!(error.contains("cut off"), "{error}");
    }
}
