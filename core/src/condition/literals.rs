//! Texts that an expression cannot do without, for those who build an index over paths.

use regex_syntax::Parser;
use regex_syntax::hir::{Hir, HirKind};

use crate::matcher::{Planted, planted};

/// What all that an expression matches has in common, as far as its outermost level tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Literals {
    /// The text it begins with.
    pub(crate) head: String,
    /// The longest text found that stands somewhere in it.
    pub(crate) core: String,
}

impl Literals {
    /// Those of an expression that is anchored at both ends. Where nothing is known, the texts are
    /// empty.
    pub(crate) fn of(expression: &str) -> Self {
        let Ok(hir) = Parser::new().parse(expression) else { return Self::default() };
        let mut reading = Reading::default();
        reading.read(&hir);
        reading.cut();
        let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
        Self { head: text(reading.head.unwrap_or_default()), core: text(reading.core) }
    }
}

/// A reading from left to right.
#[derive(Debug, Default)]
struct Reading {
    /// The text that ends here.
    run: Vec<u8>,
    /// The text of the beginning, once it has ended.
    head: Option<Vec<u8>>,
    core: Vec<u8>,
}

impl Reading {
    fn read(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(text) => self.run.extend_from_slice(&text.0),
            HirKind::Capture(group) => self.read(&group.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.read(part)),
            HirKind::Repetition(repeated) => {
                // It is there at least once, and that stands beside what is before it.
                if repeated.min > 0 || planted(Planted::OptionalCharKept) {
                    self.read(&repeated.sub);
                }
                self.cut();
            }
            HirKind::Class(_) | HirKind::Alternation(_) => self.cut(),
        }
    }

    /// What follows need not stand beside what was before.
    fn cut(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.len() > self.core.len() {
            self.core.clone_from(&run);
        }
        self.head.get_or_insert(run);
    }
}

#[cfg(test)]
mod tests {
    use super::Literals;

    #[test]
    fn texts_of_expressions() {
        for (pattern, head, core) in [
            (r"/users/\d+/x", "/users/", "/users/"),
            ("^/a/.*", "/a/", "/a/"),
            (r"/a\.b\/c+d", "/a.b/c", "/a.b/c"),
            ("/ab?cde", "/a", "cde"),
            ("/ab*c", "/a", "/a"),
            ("/ab{0,2}c", "/a", "/a"),
            ("/ab+cd", "/ab", "/ab"),
            ("/a{2,3}bcd", "/a", "bcd"),
            ("/a{2}{345}", "/a", "/a"),
            ("(/a+)+b", "/a", "/a"),
            ("/.*/r123[a-z]+", "/", "/r123"),
            ("/ab|/ac", "", ""),
            ("/a|b", "", ""),
            ("(/a|b)/cde", "", "/cde"),
            ("/a([(]|y)", "/a", "/a"),
            ("/a[|]", "/a|", "/a|"),
            ("(?i)/a", "/", "/"),
            ("/a(?i)b", "/a", "/a"),
            (r"\d", "", ""),
            (r"/a\<b", "/ab", "/ab"),
            (r"/\x41\u0042c", "/ABc", "/ABc"),
            (r"/\pLabc", "/", "abc"),
            (r"/\PNabc", "/", "abc"),
            (r"\p{Greek}/ab", "", "/ab"),
            ("[[:alpha:]|]/ab", "", "/ab"),
            ("/\u{e9}?x", "/", "/"),
            ("(?:x(y)z)*/ab", "", "/ab"),
            ("/a", "/a", "/a"),
            ("", "", ""),
            ("[", "", ""),
        ] {
            let Literals { head: got, core: held } = Literals::of(&format!(r"\A(?:{pattern})\z"));
            assert_eq!((&*got, &*held), (head, core), "{pattern}");
        }
        assert_eq!(Literals::of(r"\A(?s:/a.b)\z").head, "/a");
        assert_eq!(Literals::of(r"\A(?i:/a)\z").head, "/");
    }
}
