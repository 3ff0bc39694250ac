//! What a guard that cannot run might have applied to.

use super::{compiler, condition};
use crate::condition::PathTest;

#[test]
fn could_match_by_the_path_alone() {
    let on_a = condition("uri", "match", "/", "/a/**");
    let unreadable = condition("uri", "regex", "/", "[");
    let header = condition("header", "=", "x", "1");
    let odd = condition("acme", "~", "x", "1");
    let time = condition("uri", "TimeBefore", "/", "2000-01-01 00:00:00");
    for (mode, list, on_path, off_path) in [
        (0, vec![&on_a], true, false),
        (0, vec![&on_a, &header], true, false),
        (0, vec![&on_a, &odd], true, false),
        (0, vec![&on_a, &unreadable], true, false),
        (0, vec![&unreadable], true, true),
        (0, vec![&header], true, true),
        (0, vec![&time], true, true),
        (0, vec![], true, true),
        (1, vec![&on_a], true, false),
        (1, vec![&on_a, &unreadable], true, true),
        (1, vec![&on_a, &header], true, true),
        (1, vec![&on_a, &odd], true, true),
        (1, vec![], false, false),
    ] {
        let list: Vec<_> = list.into_iter().cloned().collect();
        let compiled = compiler().compile(mode, &list).conditions;
        assert_eq!(compiled.could_match_path("/a/1"), on_path, "{mode} {list:?}");
        assert_eq!(compiled.could_match_path("/b"), off_path, "{mode} {list:?}");
    }
}

#[test]
fn path_tests_are_told_to_index_builders() {
    let list = [
        condition("uri", "match", "/", "/a/**,/b"),
        condition("header", "=", "x", "1"),
        condition("uri", "pathPattern", "/", "/c/{x}"),
        condition("uri", "=", "/", "/d"),
        condition("uri", "startsWith", "/", "/e"),
        condition("uri", "regex", "/", "/f.*"),
        condition("uri", "regex", "/", "["),
        condition("uri", "exclude", "/", "/g"),
    ];
    let compiled = compiler().compile(0, &list);
    let told: Vec<String> = compiled
        .conditions
        .path_tests()
        .map(|test| match test {
            PathTest::Ant(patterns) => {
                patterns.iter().map(|p| p.as_str()).collect::<Vec<_>>().join("|")
            }
            PathTest::Pattern(pattern) => format!("pattern {}", pattern.as_str()),
            PathTest::Equals(text) => format!("= {text}"),
            PathTest::StartsWith(text) => format!("{text}..."),
            PathTest::Regex(regex) => format!("regex {}", regex.as_str()),
            PathTest::Contains(text) => format!("...{text}..."),
            PathTest::EndsWith(text) => format!("...{text}"),
            PathTest::Other => "other".to_owned(),
        })
        .collect();
    assert_eq!(
        told,
        ["/a/**|/b", "pattern /c/{x}", "= /d", "/e...", r"regex \A(?:/f.*)\z", "other"]
    );
}
