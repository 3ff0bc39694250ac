//! Profiles: which documents are in force.

/// Whether one of the expressions holds for the active profiles.
///
/// An expression is a profile's name, `!x`, `x & y`, `x | y`, or those in parentheses; `&` and
/// `|` are not mixed without them. A comma separates alternatives.
///
/// # Errors
/// What is wrong with an expression.
pub(super) fn holds(expressions: &[String], active: &[String]) -> Result<bool, String> {
    let mut any = false;
    for expression in expressions.iter().flat_map(|text| text.split(',')) {
        let mut parser = Parser { rest: expression.trim(), active };
        let value = parser.expression(0).filter(|_| parser.rest.is_empty()).ok_or_else(|| {
            format!(
                "expected a profile expression such as prod, !test or \"a & b\", found \"{}\"",
                expression.trim()
            )
        })?;
        any |= value;
    }
    Ok(any)
}

/// How deep parentheses and negations may nest.
const DEPTH_LIMIT: usize = 32;

struct Parser<'t> {
    rest: &'t str,
    active: &'t [String],
}

impl Parser<'_> {
    fn skip(&mut self, token: char) -> bool {
        let found = self.rest.strip_prefix(token);
        if let Some(after) = found {
            self.rest = after.trim_start();
        }
        found.is_some()
    }

    /// Terms joined by one kind of operator; `None` is a syntax error.
    fn expression(&mut self, depth: usize) -> Option<bool> {
        let mut value = self.term(depth)?;
        let mut operator = None;
        loop {
            let next = if self.skip('&') {
                '&'
            } else if self.skip('|') {
                '|'
            } else {
                return Some(value);
            };
            if operator.is_some_and(|known| known != next) {
                return None;
            }
            operator = Some(next);
            let term = self.term(depth)?;
            value = if next == '&' { value && term } else { value || term };
        }
    }

    fn term(&mut self, depth: usize) -> Option<bool> {
        if depth > DEPTH_LIMIT {
            return None;
        }
        if self.skip('!') {
            return self.term(depth + 1).map(|value| !value);
        }
        if self.skip('(') {
            let value = self.expression(depth + 1)?;
            return self.skip(')').then_some(value);
        }
        let end = self.rest.find(['&', '|', '(', ')', '!']).unwrap_or(self.rest.len());
        let name = self.rest[..end].trim();
        if name.is_empty() {
            return None;
        }
        self.rest = self.rest[end..].trim_start();
        Some(self.active.iter().any(|profile| profile == name))
    }
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn expressions() {
        let active = ["prod".to_owned(), "eu".to_owned()];
        for (text, want) in [
            ("prod", Some(true)),
            ("test", Some(false)),
            ("!test", Some(true)),
            ("prod & eu", Some(true)),
            ("prod & !eu", Some(false)),
            ("test | eu", Some(true)),
            ("test, eu", Some(true)),
            ("(test | eu) & prod", Some(true)),
            ("!(test | eu)", Some(false)),
            ("a & b | c", None),
            ("prod &", None),
            ("(prod", None),
            ("", None),
            ("prod eu", Some(false)),
        ] {
            assert_eq!(holds(&[text.to_owned()], &active).ok(), want, "{text}");
        }
        let deep = "!".repeat(1000) + "prod";
        assert!(holds(&[deep], &active).is_err());
    }
}
