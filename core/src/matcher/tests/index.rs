//! The index where random tables seldom go: many entries in one place.

use std::sync::Arc;

use super::{on, selector};
use crate::condition::tests::{Request, compiler, condition};
use crate::matcher::{Entry, Index, IndexOptions, MatchCacheOptions};
use crate::model::{Condition, Selector};

fn index_of(options: IndexOptions, list: &[Selector]) -> Index<Arc<Entry>> {
    let mut compiler = compiler();
    let mut index = Index::new(options);
    for selector in list {
        let (entry, faults) = Entry::of_selector(selector, &mut compiler);
        assert_eq!(faults, [], "{selector:?}");
        index.put(Arc::new(entry));
    }
    index.finish();
    index
}

/// An expression in which no text stands that could be looked for.
fn coreless(n: u32) -> Vec<Condition> {
    let digits: String = format!("{n:03}").chars().map(|digit| format!("[{digit}~]")).collect();
    vec![condition("uri", "regex", "/", &format!("/.*x{digits}y"))]
}

fn numbered(count: u32, conditions: impl Fn(u32) -> Vec<Condition>) -> Vec<Selector> {
    (0..count).map(|n| selector(&n.to_string(), 1, 0, conditions(n))).collect()
}

/// How many entries are asked for a request, at the most.
fn candidates(index: &Index<Arc<Entry>>, request: &Request) -> usize {
    index.candidates(request)
}

#[test]
fn many_entries_in_one_place_are_divided_by_what_else_they_ask() {
    let path = || on("/api/**");
    let rows: [(&str, Vec<Selector>, Request); 10] = [
        (
            "host",
            numbered(2_000, |n| vec![path(), condition("domain", "=", "", &format!("h{n}.test"))]),
            Request { domain: "H1234.test".to_owned(), ..Request::get("/api/x") },
        ),
        (
            "header",
            numbered(2_000, |n| vec![path(), condition("header", "=", "k", &n.to_string())]),
            Request::get("/api/x").header("k", "1234"),
        ),
        (
            "header, then query",
            numbered(2_000, |n| {
                let header = condition("header", "=", "k", &(n / 100).to_string());
                vec![path(), header, condition("query", "=", "q", &n.to_string())]
            }),
            Request::get("/api/x?q=1234").header("k", "12"),
        ),
        (
            "no path at all",
            numbered(2_000, |n| vec![condition("cookie", "=", "c", &n.to_string())]),
            Request::get("/x").header("cookie", "c=1234"),
        ),
        (
            "behind a variable",
            numbered(2_000, |n| vec![on(&format!("/users/{{name}}/{n}"))]),
            Request::get("/users/somebody/1234"),
        ),
        (
            "behind a rest",
            numbered(2_000, |n| vec![on(&format!("/users/**/{n}"))]),
            Request::get("/users/a/b/1234"),
        ),
        (
            "a text in an expression",
            numbered(2_000, |n| {
                vec![condition("uri", "regex", "/", &format!("/(a|b).*/r{n:04}[a-z]+"))]
            }),
            Request::get("/a/b/r1234abc"),
        ),
        (
            "a text anywhere",
            numbered(2_000, |n| vec![condition("uri", "contains", "/", &format!("/c{n:04}"))]),
            Request::get("/a/b/c1234d/e"),
        ),
        (
            "a text in a pattern that begins with anything",
            numbered(2_000, |n| vec![on(&format!("/**/d{n:04}-*/**"))]),
            Request::get("/a/b/d1234-x/y"),
        ),
        (
            "beginnings",
            numbered(2_000, |n| vec![condition("uri", "startsWith", "/", &format!("/u{n:05}"))]),
            Request::get("/u01234xyz/a"),
        ),
    ];
    for (what, list, request) in rows {
        let index = index_of(IndexOptions::default(), &list);
        assert_eq!(index.find(&request).map(|entry| &*entry.id), Some("1234"), "{what}");
        let asked = candidates(&index, &request);
        assert!(asked <= 24, "{what}: {asked} candidates");
    }
}

#[test]
fn a_long_list_of_expressions_is_found_in_and_edited() {
    let pattern = coreless;
    let mut index = index_of(IndexOptions::default(), &numbered(500, pattern));
    assert_eq!(candidates(&index, &Request::get("/ax321y")), 500);
    let find = |index: &Index<Arc<Entry>>, path: &str| {
        index.find(&Request::get(path)).map(|entry| entry.id.to_string())
    };
    assert_eq!(find(&index, "/ax321y"), Some("321".to_owned()));
    assert_eq!(find(&index, "/ax500y"), None);
    let before = index.clone();
    let moved = selector("321", 1, 0, pattern(500));
    index.put(Arc::new(Entry::of_selector(&moved, &mut compiler()).0));
    index.take("100");
    index.finish();
    assert_eq!(find(&index, "/ax321y"), None);
    assert_eq!(find(&index, "/ax500y"), Some("321".to_owned()));
    assert_eq!(find(&index, "/ax100y"), None);
    assert_eq!(find(&before, "/ax321y"), Some("321".to_owned()));
    assert_eq!(find(&before, "/ax100y"), Some("100".to_owned()));
}

#[test]
fn a_cache_takes_only_dear_answers_by_path_seen_twice_and_goes_with_its_index() {
    let pattern = coreless;
    let list = numbered(300, pattern);
    let mut index = index_of(IndexOptions::default(), &list);
    let ask = |index: &Index<Arc<Entry>>, path: &str| index.find(&Request::get(path)).is_some();
    for n in 0..1_000 {
        ask(&index, &format!("/unique{n}"));
    }
    assert_eq!(index.remembered(), 0, "paths seen once");
    for _ in 0..3 {
        assert!(ask(&index, "/x007y") && !ask(&index, "/none"));
        assert!(!ask(&index, &format!("/{}", "long".repeat(200))));
    }
    assert_eq!(index.remembered(), 2, "a hit and a miss");
    let shared = index.clone();
    assert_eq!(shared.remembered(), 2, "a copy shares its cache");
    index.put(Arc::new(Entry::of_selector(&selector("7", 1, 0, pattern(8)), &mut compiler()).0));
    index.finish();
    assert_eq!((index.remembered(), shared.remembered()), (0, 2));
    assert!(!ask(&index, "/x007y") && ask(&shared, "/x007y"));

    // One entry that looks at a header is enough to remember nothing.
    let header = selector("h", 0, 0, vec![on("/**"), condition("header", "=", "k", "1")]);
    let mixed: Vec<Selector> = list.iter().cloned().chain([header]).collect();
    let index = index_of(IndexOptions::default(), &mixed);
    for _ in 0..3 {
        assert!(!ask(&index, "/none"));
    }
    assert!(index.find(&Request::get("/none").header("k", "1")).is_some());
    assert_eq!(index.remembered(), 0);

    // Neither where the answer is cheap, nor where caches are off.
    let cheap = index_of(IndexOptions::default(), &numbered(300, |n| vec![on(&format!("/{n}"))]));
    let cache = MatchCacheOptions::off();
    let off = index_of(IndexOptions { cache, ..IndexOptions::default() }, &list);
    for index in [&cheap, &off] {
        for _ in 0..3 {
            ask(index, "/7");
        }
        assert_eq!(index.remembered(), 0);
    }
}

#[test]
fn the_vectors_of_patterns_are_found_by_the_index_too() {
    let rows = [
        ("match", "/http/**", ["/http", "/http/", "//http/a", "/http//a"].as_slice()),
        ("match", "/http/*", &["/http/", "/http/a"]),
        ("match", "/http/a", &["/http//a"]),
        ("match", "/a/**/c", &["/a/c", "/a/b/d/c"]),
        ("match", "/a/{id:\\d+}", &["/a/12"]),
        ("match", "/a/*.html", &["/a/x.html", "/a/.html"]),
        ("match", "/**", &["/", "/a/b"]),
        ("match", "/", &["/"]),
        ("match", "/a/**/**", &["/a"]),
        ("match", "/a/%20/b", &["/a/%20/b"]),
        ("match", "/x,/y/{z,w}", &["/x", "/y/1"]),
        ("pathPattern", "/anything/xx/**", &["/anything/xx", "/anything/xx/yy"]),
        ("pathPattern", "/a/*", &["/a/", "/a/b", "/a/%2F", "/a/;v"]),
        ("pathPattern", "/a/b", &["/a/b;v=1", "/%61/b"]),
        ("pathPattern", "/a/{*rest}", &["/a", "/a/b/c"]),
        ("pathPattern", "/a b", &["/a%20b"]),
        ("pathPattern", "/a//b", &["/a//b"]),
        ("pathPattern", "/a**", &["/abc"]),
        ("pathPattern", "/***/b", &["/a/b", "//b"]),
        ("=", "/a/b/", &["/a/b/"]),
        ("startsWith", "/a/b", &["/a/bc", "/a/b/c"]),
        ("startsWith", "/a/", &["/a/", "/a/b"]),
        ("regex", "^/a/[0-9]+", &["/a/12"]),
        ("regex", "/ab?/x", &["/a/x", "/ab/x"]),
        ("regex", r"/\x41bcdef", &["/Abcdef"]),
        ("regex", r"/.*\x41bcdef", &["/x/Abcdef"]),
        ("regex", r".*\pLbcdef", &["/xbcdef"]),
        ("regex", r"(?i)/\x{17F}et", &["/set", "/Set"]),
        ("regex", "(?i)/\u{212a}et", &["/ket"]),
        ("regex", r".*/a{2}{3}bcd", &["/x/aaaaaabcd"]),
        ("regex", "/(abc|abd)e|/abcf", &["/abce", "/abde", "/abcf"]),
        ("regex", r"/.*[x]yz(?:w+)+v", &["/a/xyzwwv"]),
    ];
    let options = IndexOptions { linear_up_to: 0, ..IndexOptions::default() };
    for (operator, pattern, paths) in rows {
        let list = [selector("s", 1, 0, vec![condition("uri", operator, "/", pattern)])];
        let linear = super::selectors(&list);
        let index = index_of(options, &list);
        for path in paths {
            let request = Request::get(path);
            // What the linear matcher says of the row is not judged here, only that it agrees.
            let wanted = super::chosen(&linear, &request);
            assert_eq!(index.find(&request).map(|e| &*e.id), wanted, "{operator} {pattern} {path}");
        }
    }
}

/// Each three entries look at a header of their own, so that each division leaves almost all undivided.
#[test]
fn entries_that_nothing_divides_well_do_not_stand_in_each_other_without_end() {
    const STACK_BYTES: usize = 256 * 1024;
    let search = || {
        let list = numbered(6_000, |n| {
            let name = format!("h{}", n / 3);
            vec![on("/api/**"), condition("header", "=", &name, &n.to_string())]
        });
        let index = index_of(IndexOptions::default(), &list);
        for wanted in ["0", "59", "3001", "5999"] {
            let name = format!("h{}", wanted.parse::<u32>().unwrap() / 3);
            let request = Request::get("/api/x").header(name.leak(), wanted);
            assert_eq!(index.find(&request).map(|entry| &*entry.id), Some(wanted));
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(search).unwrap();
    thread.join().unwrap();
}

/// Over bytes two characters are not folded to letters of ASCII, so such expressions stand in no set.
#[test]
fn letters_that_fold_to_ascii_are_found_in_long_lists_too() {
    let list = numbered(40, |n| {
        let odd = ["\\x{17F}", "\u{17f}", "\\x{212A}", "\u{212a}"][n as usize % 4];
        vec![condition("uri", "regex", "/", &format!("(?i)/.*{odd}[a~]{{{}}}", n + 1))]
    });
    let index = index_of(IndexOptions::default(), &list);
    for n in 0..40_usize {
        let letter = if n % 4 < 2 { 's' } else { 'k' };
        let path = format!("/{letter}{}", "a".repeat(n + 1));
        let found = index.find(&Request::get(&path)).map(|entry| entry.id.to_string());
        assert_eq!(found, Some(n.to_string()), "{path}");
    }
}

#[test]
fn what_is_considered_is_bounded_counted_and_in_order() {
    let list = numbered(500, coreless);
    let index = index_of(IndexOptions::default(), &list);
    let request = Request::get("/ax321y");
    let considered = index.considered(&request, 100);
    // Each group has its automaton: what that rules out is not asked.
    assert_eq!(considered.count, considered.entries.len());
    let ids: Vec<&str> = considered.entries.iter().map(|entry| &*entry.id).collect();
    assert_eq!(ids, ["321"]);

    let everywhere = |n: u32| vec![condition("header", "contains", "k", &n.to_string())];
    let index = index_of(IndexOptions::default(), &numbered(500, everywhere));
    let considered = index.considered(&Request::get("/a"), 100);
    assert_eq!((considered.count, considered.entries.len()), (500, 100));
    let order: Vec<_> = considered.entries.iter().map(|entry| entry.precedence()).collect();
    assert!(order.is_sorted());

    // One that is reached by several ways is one; one in another place is none.
    let twice = numbered(20, |_| vec![on("/a/**,/a/b")]);
    let other = (20..40).map(|n| selector(&n.to_string(), 1, 0, vec![on("/other/**")]));
    let list: Vec<Selector> = twice.into_iter().chain(other).collect();
    let index = index_of(IndexOptions::default(), &list);
    let considered = index.considered(&Request::get("/a/b"), 100);
    assert_eq!((considered.count, considered.entries.len()), (20, 20));
}

#[test]
fn who_only_looks_finds_the_same_and_is_not_remembered() {
    let index =
        index_of(IndexOptions { dear_ns: 0, ..IndexOptions::default() }, &numbered(300, coreless));
    for _ in 0..5 {
        for n in 0..20 {
            let path = format!("/x{n:03}y");
            assert_eq!(
                index.look(&Request::get(&path)).map(|e| e.id.to_string()),
                Some(n.to_string())
            );
            assert_eq!(index.considered(&Request::get(&path), 9).entries.len(), 1);
        }
    }
    assert_eq!(index.remembered(), 0);
}
