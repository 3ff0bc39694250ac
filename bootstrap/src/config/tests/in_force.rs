//! No key is accepted in silence and then does nothing.
//!
//! Looks at the source, since no compiler does: a field of the configuration that nobody outside of it
//! reads belongs to keys whose table entry says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use longmen_core::config::Status;
use regex::Regex;

use super::{SCHEMA, warnings};

/// Fields that are made from the value of a key under another name.
const DERIVED: [(&str, &str, &str); 10] = [
    ("LimitsConfig", "max_connections_is_set", "shenyu.limits.maxConnections"),
    ("LimitsConfig", "max_requests_per_connection", "shenyu.limits.maxRequestsPerConnection"),
    ("LimitsConfig", "request_max_bytes", "shenyu.limits.requestMaxBytes"),
    ("LocalConfig", "is_shipped_key", "shenyu.local.sha512Key"),
    ("SniCertificate", "chain_file", "shenyu.netty.http.sni.certificates[].keyCertChainFile"),
    ("SniCertificate", "key_file", "shenyu.netty.http.sni.certificates[].keyFile"),
    ("SniConfig", "default_secret", "shenyu.netty.http.sni.defaultK8sSecretName"),
    ("SocketOptions", "linger_seconds", "shenyu.netty.http.socketChannel.soLinger"),
    ("SocketOptions", "tos", "shenyu.netty.http.socketChannel.ipTos"),
    ("WebsocketConfig", "max_connections_is_set", "shenyu.websocket.maxConnections"),
];

/// A field of a configuration struct.
struct Field {
    owner: String,
    name: String,
    /// As written.
    kind: String,
    file: PathBuf,
}

/// The source of the crate, its tests left out: the configuration, and the rest.
struct Source {
    config: BTreeMap<PathBuf, String>,
    rest: BTreeMap<PathBuf, String>,
}

impl Source {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut source = Self { config: BTreeMap::new(), rest: BTreeMap::new() };
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder of the crate") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let within = path.strip_prefix(&root).expect("below the root").to_owned();
                let name = within.to_string_lossy().into_owned();
                if within
                    .components()
                    .any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
                {
                    continue;
                }
                let text = fs::read_to_string(&path).expect("UTF-8");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                let of_config = name == "config.rs" || within.starts_with("config");
                let part = if of_config { &mut source.config } else { &mut source.rest };
                part.insert(within, code);
            }
        }
        source
    }

    fn fields(&self) -> Vec<Field> {
        let structs = Regex::new(r"(?s)pub struct (\w+) \{\n(.*?)\n\}").expect("a pattern");
        let fields = Regex::new(r"(?m)^    pub (\w+): (.*),$").expect("a pattern");
        let mut all = Vec::new();
        for (file, text) in &self.config {
            for found in structs.captures_iter(text) {
                for field in fields.captures_iter(&found[2]) {
                    all.push(Field {
                        owner: found[1].to_owned(),
                        name: field[1].to_owned(),
                        kind: field[2].to_owned(),
                        file: file.clone(),
                    });
                }
            }
        }
        all
    }

    /// The keys that a field is read from.
    fn keys(&self, field: &Field) -> BTreeSet<String> {
        let name = &field.name;
        // In the struct's literal, or under the field's name just before it.
        let read = r#"\s*reader\s*\.(?:get|optional|list|secret|member|entries)\(\s*"([^"]+)""#;
        let pattern = format!(r"\b{name}(?:: \S+ =|:| =){read}");
        let pattern = Regex::new(&pattern).expect("a pattern");
        let text = &self.config[&field.file];
        let found = pattern.captures_iter(text).map(|found| found[1].to_owned());
        let derived = DERIVED
            .iter()
            .filter(|(owner, name, _)| *owner == field.owner && *name == field.name)
            .map(|(_, _, key)| (*key).to_owned());
        found.chain(derived).collect()
    }
}

/// Which fields are read, by owner and name.
struct Reads<'a> {
    source: &'a Source,
    fields: &'a [Field],
}

impl Reads<'_> {
    /// The fields that hold a struct.
    fn holders<'b>(&'b self, owner: &'b str) -> impl Iterator<Item = &'b Field> {
        let word = Regex::new(&format!(r"\b{owner}\b")).expect("a pattern");
        self.fields.iter().filter(move |field| word.is_match(&field.kind))
    }

    fn is_held(&self, owner: &str) -> bool {
        owner == "GatewayConfig" || self.holders(owner).any(|holder| self.is_read(holder))
    }

    /// Whether code outside of the configuration reads a field, or other settings depend on it. Where
    /// several structs have a field of this name, the code must also name the struct, or the field
    /// that holds it.
    fn is_read(&self, field: &Field) -> bool {
        let Field { owner, name, .. } = field;
        if !self.is_held(owner) {
            return false;
        }
        let alone = self.fields.iter().filter(|other| other.name == *name).count() == 1;
        let access = Regex::new(&format!(r"\.\s*{name}\b[^(]")).expect("a pattern");
        let holders: Vec<&str> = self.holders(owner).map(|holder| holder.name.as_str()).collect();
        let hint =
            Regex::new(&format!(r"\b(?:{owner}|{})\b", holders.join("|"))).expect("a pattern");
        let outside = self.source.rest.values().any(|code| {
            access.is_match(code) && (alone || owner == "GatewayConfig" || hint.is_match(code))
        });
        let of = |holder: &str, code: &str| {
            Regex::new(&format!(r"\b{holder}\s*\.\s*{name}\b")).expect("a pattern").is_match(code)
        };
        // Keys have the names of fields in them.
        let texts = Regex::new(r#""(?:[^"\\]|\\.)*""#).expect("a pattern");
        let mut config = self.source.config.values().map(|code| texts.replace_all(code, ""));
        outside
            || of("self", &self.source.config[&field.file])
            || config.any(|code| holders.iter().any(|holder| of(holder, &code)))
    }
}

#[test]
fn a_key_that_does_nothing_says_so() {
    let source = Source::read();
    let fields = source.fields();
    assert!(fields.len() > 100, "the source is understood: {} fields", fields.len());
    let reads = Reads { source: &source, fields: &fields };
    let is_struct = |kind: &str| {
        let mut words = kind.split(|c: char| !c.is_alphanumeric());
        words.any(|word| fields.iter().any(|field| field.owner == word))
    };
    let (mut silent, mut dead) = (Vec::new(), 0);
    for field in fields.iter().filter(|field| !reads.is_read(field)) {
        // Its own fields are looked at.
        if is_struct(&field.kind) {
            continue;
        }
        dead += 1;
        let keys = source.keys(field);
        if keys.is_empty() {
            silent.push(format!("{}.{}: of which key?", field.owner, field.name));
        }
        for key in keys {
            let spec = SCHEMA.key(&key).unwrap_or_else(|| panic!("{key} is declared"));
            if spec.status == Status::Used {
                silent.push(format!("{key} ({}.{})", field.owner, field.name));
            }
        }
    }
    assert!(silent.is_empty(), "read, and of no effect, which the table does not say: {silent:#?}");
    assert!(dead > 0 && dead < 30, "{dead} fields that nobody reads");
}

/// The test above sees what it is to see.
#[test]
fn fields_that_are_read_are_told_from_those_that_are_not() {
    let source = Source::read();
    let fields = source.fields();
    let reads = Reads { source: &source, fields: &fields };
    let is_read = |owner: &str, name: &str| {
        let field = fields.iter().find(|field| field.owner == owner && field.name == name);
        reads.is_read(field.unwrap_or_else(|| panic!("{owner}.{name}")))
    };
    for (owner, name, expected) in [
        ("ServerConfig", "port", true),
        ("CompatConfig", "mode", true),
        ("NettyConfig", "worker_count", true),
        ("PluginsConfig", "switches", true),
        ("UpstreamCheckConfig", "enabled", true),
        ("PoolConfig", "max_idle_time", true),
        ("CompressionConfig", "enabled", false),
        ("CacheConfig", "enabled", true),
        ("ServerConfig", "body_buffer_bytes", false),
    ] {
        assert_eq!(is_read(owner, name), expected, "{owner}.{name}");
    }
    let port = fields.iter().find(|field| field.owner == "ServerConfig" && field.name == "port");
    assert!(source.keys(port.expect("it is there")).contains("server.port"));
}

#[test]
fn a_switch_without_effect_is_warned_of_by_name() {
    for key in ["server.compression.enabled", "shenyu.netty.http.sni.enabled"] {
        // Without files, which would have to be there.
        let extra = "shenyu.netty.http.sni.mod: k8s";
        let on = warnings(&format!("{key}: true\n{extra}"));
        assert_eq!(on, [format!("this version does not act on: {key}")]);
        assert_eq!(warnings(&format!("{key}: false")), [""; 0], "{key}");
    }
}
