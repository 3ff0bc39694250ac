//! Generated inputs: patterns against a plain reading of their rules, and nothing ever panics.

use proptest::prelude::*;

use super::{Request, compiler, condition};
use crate::condition::regexes::Regexes;
use crate::condition::{AntPattern, PathPattern, canonical, check_path, cookie_value, query_value};
use crate::condition::{CompiledConditions, validate};

/// The rules of Ant patterns over lists of segments, with all the copying that ours avoids.
fn plain_ant(pattern: &str, path: &str) -> bool {
    let split = |text: &str| -> Vec<String> {
        text.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
    };
    if pattern.starts_with('/') != path.starts_with('/') {
        return false;
    }
    let (wanted, given) = (split(pattern), split(path));
    let slashes_agree = pattern.ends_with('/') == path.ends_with('/');
    if plain_segments(&wanted, &given) {
        return wanted.last().is_some_and(|last| last == "**") || slashes_agree;
    }
    // A star in the last place takes the nothing after a slash.
    let deep = wanted.iter().any(|segment| segment == "**");
    wanted.split_last().is_some_and(|(last, before)| {
        !deep && last == "*" && path.ends_with('/') && plain_segments(before, &given)
    })
}

fn plain_segments(wanted: &[String], given: &[String]) -> bool {
    match wanted.split_first() {
        None => given.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=given.len()).any(|skipped| plain_segments(rest, &given[skipped..]))
        }
        Some((first, rest)) => given.split_first().is_some_and(|(text, others)| {
            plain_text(&first.replace("{x}", "*"), text) && plain_segments(rest, others)
        }),
    }
}

fn plain_text(wanted: &str, text: &str) -> bool {
    match wanted.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            plain_text(&wanted[1..], text)
                || text.chars().next().is_some_and(|c| plain_text(wanted, &text[c.len_utf8()..]))
        }
        Some(w) => text.chars().next().is_some_and(|c| {
            (w == '?' || w == c) && plain_text(&wanted[w.len_utf8()..], &text[c.len_utf8()..])
        }),
    }
}

/// Whether the path has a segment that climbs or stays.
fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| segment == "." || segment == "..")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn ant_patterns_follow_the_plain_rules(
        pattern in r"/?((\*\*|\*|a|b|\?|a\*|\*b|\{x\}|a\{x\})/{1,2}){0,5}(\*\*|\*|a|b|\{x\})?",
        path in "/?((a|b|ab|ba|c)/{1,2}){0,5}(a|b|ab)?",
    ) {
        let compiled = AntPattern::compile(&pattern, &mut Regexes::new()).unwrap();
        prop_assert_eq!(compiled.matches(&path), plain_ant(&pattern, &path));
    }

    #[test]
    fn plain_paths_match_themselves(path in "(/[a-z.~-]{1,3}){1,5}/?") {
        let mut regexes = Regexes::new();
        prop_assert!(AntPattern::compile(&path, &mut regexes).unwrap().matches(&path));
        prop_assert!(PathPattern::compile(&path, &mut regexes).unwrap().matches(&path));
        if !has_dot_segment(&path) {
            prop_assert_eq!(check_path(&path), Ok(()));
            prop_assert_eq!(canonical(&path), None);
        }
    }

    #[test]
    fn what_passes_the_check_is_canonical_without_dots(
        path in "(/|//|%2[fF]|;|%3[bB]|\\.|%2[eE]|%c0%ae|a|%41|%25|=|%E4){0,8}",
    ) {
        if check_path(&path).is_ok() {
            let form = canonical(&path).unwrap_or(path);
            prop_assert!(!has_dot_segment(&form), "{}", form);
            prop_assert!(!form.contains("//") && !form.contains(';'), "{}", form);
        }
    }

    #[test]
    fn nothing_panics(
        operator in prop::sample::select(vec![
            "match", "exclude", "pathPattern", "regex", "=", "contains", "TimeBefore", "TimeAfter",
        ]),
        param_type in prop::sample::select(vec!["uri", "header", "query", "cookie", "domain"]),
        value in r"([/{}*?:;,\[\]()\\.|&~^$+=%\-]|\\[dwsbQExp]|a|1|ä|中){0,12}",
        text in r"([/;%=&\x22.\\]|a|%[0-9a-f]{0,2}|ä|中){0,12}",
    ) {
        let list = [condition(param_type, operator, "a", &value)];
        let faults = validate(&mut compiler(), &list);
        let compiled = compiler().compile(0, &list);
        let request = Request::get(&text);
        let outcomes = compiled.conditions.explain(&list, &request);
        prop_assert_eq!(outcomes[0].matched, CompiledConditions::matches(&compiled.conditions, &request));
        // Whatever a gateway cannot use is refused before it is stored.
        prop_assert!(compiled.faults.is_empty() || !faults.is_empty());
        let _: (_, _, _) = (check_path(&text), canonical(&text), query_value(&text, "a"));
        let _: Option<&str> = cookie_value(&text, "a");
    }
}
