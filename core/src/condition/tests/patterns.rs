//! The executed vectors of Ant patterns and path patterns.

use crate::condition::path_pattern::PatternFault;
use crate::condition::regexes::Regexes;
use crate::condition::{AntPattern, PathPattern};

/// Pattern, paths it takes, paths it does not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Source: executed on ShenYu 2.7.1, operator `match` on `uri`, every row.
const ANT: &[Row] = &[
    (
        "/http/**",
        &["/http", "/http/", "/http/a", "/http/a/b/", "//http/a", "/http//a"],
        &["/httpx", "/HTTP/a"],
    ),
    ("/http/*", &["/http/", "/http/a"], &["/http", "/http/a/", "/http/a/b"]),
    ("/http/a", &["/http//a"], &["/http/a/"]),
    ("/http/a/", &["/http/a/"], &["/http/a"]),
    ("/a/*/c", &["/a/b/c"], &["/a//c", "/a/b/x/c"]),
    ("/a/**/c", &["/a/c", "/a/b/c", "/a/b/d/c"], &["/a/b/d"]),
    ("/a/?", &["/a/b"], &["/a/bb"]),
    ("/a/b?", &[], &["/a/b"]),
    ("/a/{id}", &["/a/1"], &["/a/", "/a/1/2"]),
    (r"/a/{id:\d+}", &["/a/12"], &["/a/x"]),
    ("/a/*.html", &["/a/x.html", "/a/.html"], &["/a/x.htm"]),
    ("/a/x*y", &["/a/xy", "/a/xzzy"], &[]),
    ("/**", &["/", "/a", "/a/b/c/"], &[""]),
    ("/*", &["/", "/a"], &["/a/b"]),
    ("/", &["/"], &["/a"]),
    ("/a/**/", &["/a/b", "/a/b/"], &[]),
    ("/a/**/**", &["/a"], &[]),
    ("**", &["a"], &["/a"]),
    ("a/**", &[], &["/a/b"]),
    ("/a/%20/b", &["/a/%20/b"], &[]),
    ("/a/*/b", &["/a/%2F/b"], &[]),
    ("/a b/*", &["/a b/c"], &[]),
    ("/a.b", &[], &["/axb"]),
    ("/a/b", &[], &["/a/b;v=1"]),
    ("/a/b;v=1", &["/a/b;v=1"], &[]),
    ("/a/**", &["/a/b/../c"], &[]),
];

/// Corners of the same algorithm that follow from its description.
const ANT_MORE: &[Row] = &[
    ("/a/*/", &["/a/b/", "/a/"], &["/a/b", "/a"]),
    ("/a/{id}/", &["/a/b/"], &["/a/b", "/a/"]),
    ("/a/**/c/", &["/a/c/", "/a/b/c/"], &["/a/c", "/a/b/c"]),
    ("/a/**/b/**/c", &["/a/b/c", "/a/x/b/y/c", "/a/b/b/c/c"], &["/a/c", "/a/c/b", "/a/b"]),
    ("/**/b", &["/b", "/a/b", "/a/a/b"], &["/", "/b/", "/b/c"]),
    ("/**/a/b/**", &["/a/b", "/x/a/a/b/y", "/a/x/a/b"], &["/a", "/a/x/b"]),
    ("/**/a/b/**/b/c", &["/a/b/b/c", "/a/a/b/x/b/c"], &["/a/b/c"]),
    ("/**/**/a", &["/a", "/x/a"], &["/"]),
    ("/a/**/{x:[0-9]{1,2}}", &["/a/12", "/a/b/1"], &["/a/b", "/a/123"]),
    ("/a/v{x}.json", &["/a/v1.json", "/a/v.json"], &["/a/1.json"]),
    ("/{a}/{b}", &["/x/y", "//x//y"], &["/x", "/x/y/z"]),
    ("", &[""], &["/", "a"]),
    ("//a//b", &["/a/b", "/a//b"], &["/a/b/"]),
    ("/\u{e4}/?", &["/\u{e4}/\u{df}"], &["/a/\u{df}"]),
];

/// Source: executed on ShenYu 2.7.1, operator `pathPattern` on `uri`, every row.
const PATH_PATTERN: &[Row] = &[
    ("/anything/xx/**", &["/anything/xx", "/anything/xx/", "/anything/xx/yy"], &["/anything/x"]),
    ("/a/*", &["/a/", "/a/b", "/a/%2F"], &["/a", "/a/b/"]),
    ("/a/b", &["/a/b;v=1"], &["/a/b/", "/A/b", "/a//b"]),
    ("/a/b/", &["/a/b/"], &["/a/b"]),
    ("/a/{id}", &["/a/1"], &["/a/"]),
    ("/a/{id:[0-9]+}", &["/a/12"], &["/a/x"]),
    ("/a/{*rest}", &["/a", "/a/b/c"], &[]),
    ("/a b", &["/a%20b"], &[]),
    ("/a%20b", &[], &["/a%20b"]),
    ("/a//b", &["/a//b"], &[]),
    ("/a/*/b", &[], &["/a//b"]),
    ("/**", &["/", "", "/a"], &[]),
    ("", &[""], &["/"]),
    ("a/**", &[], &["/a/b"]),
    ("/a**", &["/abc"], &[]),
    ("/a**b", &["/axb"], &[]),
    ("/a/%2F", &[], &["/a/%2F"]),
];

/// Corners of the same algorithm that follow from its description.
const PATH_PATTERN_MORE: &[Row] = &[
    ("/a/*/c", &["/a/b/c", "/a/b;x/c", "/a/%2e/c"], &["/a/;x/c", "/a/b/d/c"]),
    ("/a/?", &["/a/b", "/a/%62", "/a/b;x"], &["/a/", "/a", "/a/bb"]),
    ("/a/x-{id}", &["/a/x-1"], &["/a/x", "/a/y-1"]),
    ("/{*rest}", &["/", "", "/a/b"], &["a"]),
    ("/a/**", &["/a/", "/a//b"], &["/ab"]),
    ("/a/{id:[a-z]{2}}/b", &["/a/xy/b"], &["/a/xyz/b"]),
    ("/%C3%A4", &[], &["/%C3%A4"]),
    ("/\u{e4}", &["/%C3%A4", "/%c3%a4"], &["/%E4"]),
    ("/a/b", &["/a/%62"], &["/a/%zz", "/a/b%", "/a"]),
    ("/{a-b}", &["/x"], &["/"]),
];

fn check(rows: &[Row], takes: impl Fn(&str, &str) -> bool) {
    for (pattern, hits, misses) in rows {
        for hit in *hits {
            assert!(takes(pattern, hit), "{pattern} should match {hit:?}");
        }
        for miss in *misses {
            assert!(!takes(pattern, miss), "{pattern} should not match {miss:?}");
        }
    }
}

#[test]
fn ant_patterns() {
    let takes = |pattern: &str, path: &str| {
        AntPattern::compile(pattern, &mut Regexes::new()).unwrap().matches(path)
    };
    check(ANT, takes);
    check(ANT_MORE, takes);
}

#[test]
fn path_patterns() {
    let takes = |pattern: &str, path: &str| {
        PathPattern::compile(pattern, &mut Regexes::new()).unwrap().matches(path)
    };
    check(PATH_PATTERN, takes);
    check(PATH_PATTERN_MORE, takes);
}

#[test]
fn refused_path_patterns() {
    for (pattern, text) in [
        ("/a/**/c", "No more pattern data allowed after {*...} or ** pattern element"),
        ("/**/b", "No more pattern data allowed after {*...} or ** pattern element"),
        ("/a/{*x}/b", "No more pattern data allowed after {*...} or ** pattern element"),
        ("/a/{x}/{x}", "Not allowed to capture 'x' twice in the same pattern"),
        ("/a/{x}-{x}", "Not allowed to capture 'x' twice in the same pattern"),
        ("/a/{x", "Expected close capture character after variable name }"),
        ("/a/{x:[0-9]+", "Expected close capture character after variable name }"),
        ("/a/{x:a/b}", "Expected close capture character after variable name }"),
        ("/a/x}", "Missing preceding open capture character before variable name{"),
        ("/a/{x{y}}", "Not allowed to nest variable captures"),
        ("/a/{x:}", "Missing regex constraint on capture"),
        ("/a/{1x}", "Char '1' not allowed at start of captured variable name"),
        ("/a/{x.y}", "Char '.' is not allowed in a captured variable name"),
        ("/a/x{*y}", "{*...} can only be preceded by a path separator"),
    ] {
        let fault = PathPattern::compile(pattern, &mut Regexes::new()).unwrap_err();
        assert_eq!(fault, PatternFault { text: text.to_owned(), stock: true }, "{pattern}");
    }
    for pattern in ["/a/{x:[}", "/a/{x:(a)}", "/a/{x:(?=a)}"] {
        let fault = PathPattern::compile(pattern, &mut Regexes::new()).unwrap_err();
        assert!(!fault.stock, "{pattern}: {fault:?}");
    }
}
