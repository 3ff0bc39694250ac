//! Random entries and requests over a small alphabet, so that they meet often.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use rand::seq::IndexedRandom;
use rand::{Rng, rngs::StdRng};

use crate::condition::Compiler;
use crate::condition::tests::{Request, condition};
use crate::matcher::{Entry, EntryKind};
use crate::model::Condition;

/// One of `all`.
pub(crate) fn pick<T: Copy>(rng: &mut StdRng, all: &[T]) -> T {
    *all.choose(rng).unwrap()
}

/// What an entry is made of, before it is compiled.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) sort: i32,
    pub(crate) enabled: bool,
    pub(crate) kind: EntryKind,
    pub(crate) mode: i32,
    pub(crate) conditions: Vec<Condition>,
}

impl Draft {
    /// A random entry; `taste` says what its table is like, so that tables differ.
    pub(crate) fn random(rng: &mut StdRng, id: String, taste: u32) -> Self {
        let kind = match rng.random_range(0..40) {
            0 => EntryKind::Full,
            1 => EntryKind::Other,
            2..=20 => EntryKind::Custom,
            _ => EntryKind::Rule,
        };
        let mode = pick(rng, &[0, 0, 0, 0, 1, 2]);
        let count = pick(rng, &[0, 1, 1, 1, 2, 2, 2, 3]);
        let count = match taste {
            _ if count == 0 && rng.random_bool(0.8) => 1,
            CROWDED => count + 1,
            _ => count,
        };
        let conditions = (0..count).map(|at| random_condition(rng, at, taste)).collect();
        let enabled = rng.random_bool(0.9);
        Self { id, sort: rng.random_range(0..3), enabled, kind, mode, conditions }
    }

    pub(crate) fn compile(&self, compiler: &mut Compiler) -> Arc<Entry> {
        let conditions = compiler.compile(self.mode, &self.conditions).conditions;
        Arc::new(Entry {
            id: self.id.as_str().into(),
            sort: self.sort,
            enabled: self.enabled,
            kind: self.kind,
            conditions,
        })
    }
}

/// A table full of what no tree divides.
const UNDIVIDED: u32 = 1;
/// A table with many entries in few places.
const CROWDED: u32 = 2;

fn random_condition(rng: &mut StdRng, at: usize, taste: u32) -> Condition {
    if taste == CROWDED && rng.random_bool(0.8) {
        let pattern = pick(rng, &["/**", "/a/**", "/**/a", "/**/b", "/a/**/b"]);
        return match at {
            0 => condition("uri", "match", "/", pattern),
            1 if rng.random_bool(0.6) => condition("header", "=", "k", pick(rng, &["1", "2"])),
            _ => on_other_inputs(rng),
        };
    }
    let on_path = if at == 0 { 0.85 } else { 0.35 };
    if rng.random_bool(on_path) { on_the_path(rng, taste) } else { on_other_inputs(rng) }
}

fn on_the_path(rng: &mut StdRng, taste: u32) -> Condition {
    let uri = |operator: &str, value: &str| condition("uri", operator, "/", value);
    let kind =
        if taste == UNDIVIDED { rng.random_range(60..=100) } else { rng.random_range(0..=100) };
    match kind {
        0..45 => {
            let count = pick(rng, &[1, 1, 1, 2, 3]);
            let all: Vec<String> = (0..count).map(|_| ant_pattern(rng)).collect();
            uri("match", &all.join(","))
        }
        45..55 => uri("=", &plain_path(rng)),
        55..63 => {
            let path = plain_path(rng);
            let end = rng.random_range(1..=path.len());
            let cut = (end..=path.len()).find(|at| path.is_char_boundary(*at)).unwrap();
            uri("startsWith", &path[..cut])
        }
        63..75 => uri("pathPattern", &path_pattern(rng)),
        75..88 => {
            let head = pick(rng, &["/", "^/", "/a", "/a/", "/b/", "/ab", "(?i)/A", "", r"/a\b"]);
            let tail = pick(
                rng,
                &[
                    ".*",
                    "?/.*",
                    "*",
                    "/.*|/b.*",
                    "[abc/]+",
                    r"(/\w+)*",
                    "/b|/c",
                    ".*/a/b",
                    ".*/a/b?.*",
                    ".*/b/a+/.*",
                    "(/.*)?/x1",
                    ".*[/]a/b/.*",
                    ".*(b/a|a/b)/b.*",
                ],
            );
            uri("regex", &format!("{head}{tail}"))
        }
        88..93 => uri("contains", pick(rng, &["a", "/b", "1", "a/b", "/a/b", "b/a/b", "%20"])),
        93..97 => {
            uri("endsWith", pick(rng, &["a", "/b", "c", "/", "x1", "/x1", "/a/b", "a/b/a/b"]))
        }
        97..99 => uri("exclude", &ant_pattern(rng)),
        99 => uri("isBlank", ""),
        _ => uri(">", "unusable"),
    }
}

fn on_other_inputs(rng: &mut StdRng) -> Condition {
    let value = pick(rng, &["1", "2"]);
    match rng.random_range(0..14) {
        0..4 => condition("header", "=", "k", value),
        4..6 => condition("req_method", "=", "", pick(rng, &["GET", "GET", "POST"])),
        6..8 => condition("domain", "=", "", pick(rng, &["h1.test", "H1.test", "h2.test"])),
        8 => condition("query", "=", "q", value),
        9 => condition("cookie", "=", "c", value),
        10 => condition("ip", "=", "", pick(rng, &["127.0.0.1", "10.0.0.9"])),
        11 => condition("header", "isBlank", "k", ""),
        12 => condition("header", "contains", "k", value),
        _ => condition("uri", "TimeBefore", "/", "2030-01-01 00:00:00"),
    }
}

fn ant_pattern(rng: &mut StdRng) -> String {
    const SEGMENTS: [&str; 23] = [
        "a",
        "a",
        "a",
        "b",
        "b",
        "b",
        "c",
        "c",
        "*",
        "*",
        "**",
        "**",
        "{n}",
        "{n:[ab]+}",
        "a*",
        "*b",
        "?",
        "x?",
        "a?",
        "x{n:[0-9]}",
        "x1*",
        "a%20b",
        "ab",
    ];
    let mut out = String::new();
    for _ in 0..rng.random_range(0..4) {
        out.push_str(if rng.random_bool(0.04) { "//" } else { "/" });
        out.push_str(pick(rng, &SEGMENTS));
    }
    let ends = ["", "", "", "", "/", "/**", "/**", "/*", "/**/c", "/**/b", "/**/a/*"];
    out.push_str(pick(rng, &ends));
    match out.len() {
        0 => "/".to_owned(),
        _ if rng.random_bool(0.03) => out.trim_start_matches('/').to_owned() + "x",
        _ => out,
    }
}

fn path_pattern(rng: &mut StdRng) -> String {
    const SEGMENTS: [&str; 16] = [
        "a",
        "a",
        "b",
        "b",
        "c",
        "*",
        "*",
        "{n}",
        "{m:[ab]+}",
        "a*",
        "?",
        "x{o}",
        "a b",
        "***",
        "a;v=1",
        "ab",
    ];
    let mut out = String::new();
    for _ in 0..rng.random_range(1..4) {
        out.push_str(if rng.random_bool(0.04) { "//" } else { "/" });
        out.push_str(pick(rng, &SEGMENTS));
    }
    out.push_str(pick(rng, &["", "", "", "/", "/**", "/{*rest}", "/*"]));
    out
}

/// A path as it might be configured.
fn plain_path(rng: &mut StdRng) -> String {
    let mut out = String::new();
    for _ in 0..rng.random_range(1..4) {
        out.push_str(if rng.random_bool(0.05) { "//" } else { "/" });
        out.push_str(pick(rng, &["a", "a", "b", "b", "c", "ab", "x1"]));
    }
    if rng.random_bool(0.15) {
        out.push('/');
    }
    out
}

/// A random request.
pub(crate) fn request(rng: &mut StdRng) -> Request {
    const SEGMENTS: [&str; 20] = [
        "a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "ab", "x1", "z", "a%20b", "%61", "a;v=1",
        ";x", "", "b%2Fc", "a%zz",
    ];
    let mut path = String::new();
    for _ in 0..rng.random_range(0..5) {
        path.push('/');
        path.push_str(pick(rng, &SEGMENTS));
    }
    match rng.random_range(0..30) {
        0..4 => path.push('/'),
        4 => path = pick(rng, &["", "*", "a/b", " ", "a", "/a//b//"]).to_owned(),
        _ if path.is_empty() => path.push('/'),
        _ => {}
    }
    vary(rng, &path)
}

/// A request for the path that differs from others in everything else.
pub(crate) fn vary(rng: &mut StdRng, path: &str) -> Request {
    let mut request = Request::get("/");
    path.clone_into(&mut request.path);
    request.query = pick(rng, &["", "q=1", "q=2"]).to_owned();
    request.method = pick(rng, &["GET", "GET", "POST"]).to_owned();
    request.domain = pick(rng, &["h1.test", "h2.test", "H1.TEST", ""]).to_owned();
    request.ip = pick(rng, &["127.0.0.1", "10.0.0.9"]).to_owned();
    for (name, values) in [("k", ["", "1", "2"]), ("cookie", ["", "c=1", "c=2"])] {
        let value = pick(rng, &values);
        if !value.is_empty() {
            let value = HeaderValue::from_static(value);
            request.headers.append(HeaderName::from_static(name), value);
        }
    }
    request
}
