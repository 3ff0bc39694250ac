use super::{Node, Step, documents, line_of, to_string};

fn text(s: &str) -> Node {
    Node::Text(s.to_owned())
}

fn member(s: &str) -> Step {
    Step::Member(s.to_owned())
}

#[test]
fn scalars_keep_their_text() {
    for written in ["123e4567", "0123456", "1_000", "0x1F", "1e5", "yes", "TRUE", "1.50", ".5"] {
        let got = documents(&format!("a: {written}")).expect(written);
        assert_eq!(got, [Node::Map(vec![("a".to_owned(), text(written))])]);
    }
    let quoted = documents("a: \"x\\ty\"\nb: 'it''s'\nc: |\n  two\n  lines\n").expect("valid");
    let want = [("a", "x\ty"), ("b", "it's"), ("c", "two\nlines\n")];
    assert_eq!(quoted, [Node::Map(want.map(|(k, v)| (k.to_owned(), text(v))).into())]);
}

#[test]
fn nothing_in_all_spellings() {
    let got = documents("a:\nb: ~\nc: null\nd: ''\n500: x\n").expect("valid");
    let want = vec![
        ("a".to_owned(), Node::Null),
        ("b".to_owned(), Node::Null),
        ("c".to_owned(), Node::Null),
        ("d".to_owned(), text("")),
        ("500".to_owned(), text("x")),
    ];
    assert_eq!(got, [Node::Map(want)]);
}

#[test]
fn all_documents_are_read() {
    let got = documents("a: 1\n---\n---\nb: [x, y]\n").expect("valid");
    assert_eq!(got.len(), 3);
    assert_eq!(got[1], Node::Null);
    let list = Node::List(vec![text("x"), text("y")]);
    assert_eq!(got[2], Node::Map(vec![("b".to_owned(), list)]));
}

#[test]
fn merge_keys_fill_in() {
    let got = documents("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n").expect("valid");
    let Node::Map(members) = &got[0] else { panic!("a mapping") };
    let want = vec![("y".to_owned(), text("3")), ("x".to_owned(), text("1"))];
    assert_eq!(members[1], ("use".to_owned(), Node::Map(want)));
    let error = documents("a:\n  <<: 5\n").expect_err("not a mapping");
    assert_eq!(error.message, "a merge key (<<) needs a mapping or a list of mappings");
}

#[test]
fn errors_have_a_line_and_no_content() {
    for (yaml, line, message) in [
        ("a: 1\nb: [secret, 2\nc: 3\n", Some(3), "did not find expected ',' or ']'"),
        ("a: hidden\n\tb: 2\n", Some(2), "found a tab character"),
        ("a: 1\na: 2\n", Some(1), "duplicate entry with key \"a\""),
        ("a: *none\n", Some(1), "unknown anchor"),
        ("a: !custom hidden\n", Some(1), "the tag !custom is not known"),
        ("a: \"hidden\n", None, ""),
    ] {
        let error = documents(yaml).expect_err(yaml);
        assert!(!error.message.contains("hidden") && !error.message.contains("secret"), "{error}");
        if line.is_some() {
            assert_eq!(error.line, line, "{yaml}: {error}");
            assert!(error.message.contains(message), "{yaml}: {error}");
        }
    }
}

#[test]
fn endless_texts_are_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..10 {
        let inside = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{inside}]\n"));
    }
    assert!(documents(&bomb).is_err());
    assert!(documents(&"[".repeat(100_000)).is_err());
}

#[test]
fn lines_of_keys_and_elements() {
    let yaml = "# head\na:\n  b: 1\n  c:\n    - x\n    - d: 2\n---\na:\n\n  b: 3\n  e: {f: 1,\n      g: 2}\n";
    for (document, steps, line) in [
        (0, vec![member("a")], Some(2)),
        (0, vec![member("a"), member("b")], Some(3)),
        (0, vec![member("a"), member("c"), Step::Element(0)], Some(5)),
        (0, vec![member("a"), member("c"), Step::Element(1), member("d")], Some(6)),
        (1, vec![member("a"), member("b")], Some(10)),
        (1, vec![member("a"), member("e"), member("g")], Some(12)),
        (1, vec![member("none")], None),
        (2, vec![member("a")], None),
    ] {
        assert_eq!(line_of(yaml, document, &steps), line, "{document} {steps:?}");
    }
}

#[test]
fn a_value_is_written_as_one_document() {
    let value = std::collections::BTreeMap::from([("a", vec![1, 2]), ("b", vec![])]);
    assert_eq!(to_string(&value).as_deref(), Ok("a:\n- 1\n- 2\nb: []\n"));
}
