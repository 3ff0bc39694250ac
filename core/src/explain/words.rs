//! The words of a command line, as a POSIX shell and bash divide it.
//!
//! Own code rather than a library: a fault is to be told with its place, and browsers copy requests
//! with bash's `$'…'`, which the libraries for shell words (shlex, shell-words) do not know.

use super::RequestFault;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The place of its first character in the line, from 1.
    pub(super) at: usize,
}

/// The line under way.
struct Reader {
    chars: Vec<char>,
    at: usize,
}

/// Divides a line.
///
/// # Errors
/// A quote that is not closed, or something that would make the line more than one plain command.
pub(super) fn words(line: &str) -> Result<Vec<Word>, RequestFault> {
    let mut reader = Reader { chars: line.chars().collect(), at: 0 };
    let mut words = Vec::new();
    while reader.skip_blanks() {
        words.push(reader.word()?);
    }
    Ok(words)
}

/// A fault at a character, from 1.
pub(super) fn fault_at(at: usize, value: &str, expected: &str) -> RequestFault {
    RequestFault { at: Some(at), ..RequestFault::new("curl", value, expected) }
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// Goes to the next word; false at the end.
    fn skip_blanks(&mut self) -> bool {
        while let Some(c) = self.peek() {
            let continued = c == '\\' && matches!(self.chars.get(self.at + 1), Some('\n' | '\r'));
            if !c.is_whitespace() && !continued {
                return true;
            }
            self.at += 1;
        }
        false
    }

    fn word(&mut self) -> Result<Word, RequestFault> {
        let at = self.at + 1;
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace()) {
            self.at += 1;
            match c {
                '\'' => self.single(&mut text)?,
                '"' => self.double(&mut text)?,
                '$' if self.peek() == Some('\'') => {
                    self.at += 1;
                    self.ansi(&mut text)?;
                }
                '\\' => match self.next() {
                    // A line that goes on.
                    Some('\r') if self.peek() == Some('\n') => self.at += 1,
                    Some('\n') => {}
                    Some(c) => text.push(c),
                    None => return Err(self.here("\\", "a character after the backslash")),
                },
                '|' | ';' | '&' | '<' | '>' | '(' | ')' | '`' => {
                    let expected = "a character in quotes: the shell would take it for its own";
                    return Err(self.here(&c.to_string(), expected));
                }
                '$' => return Err(self.here("$", VARIABLE)),
                c => text.push(c),
            }
        }
        Ok(Word { text, at })
    }

    /// A fault at the character that was read last.
    fn here(&self, value: &str, expected: &str) -> RequestFault {
        fault_at(self.at, value, expected)
    }

    fn single(&mut self, text: &mut String) -> Result<(), RequestFault> {
        let from = self.at;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => text.push(c),
                None => return Err(fault_at(from, "'", CLOSED)),
            }
        }
    }

    fn double(&mut self, text: &mut String) -> Result<(), RequestFault> {
        let from = self.at;
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => return Err(fault_at(from, "\"", CLOSED)),
                },
                Some('`') => return Err(self.here("`", VARIABLE)),
                Some('$') if self.peek().is_some_and(is_expansion) => {
                    return Err(self.here("$", VARIABLE));
                }
                Some(c) => text.push(c),
                None => return Err(fault_at(from, "\"", CLOSED)),
            }
        }
    }

    /// Bash's `$'…'`, with the escapes of C.
    fn ansi(&mut self, text: &mut String) -> Result<(), RequestFault> {
        let from = self.at;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => self.escape(text, from)?,
                Some(c) => text.push(c),
                None => return Err(fault_at(from, "'", CLOSED)),
            }
        }
    }

    fn escape(&mut self, text: &mut String, from: usize) -> Result<(), RequestFault> {
        let at = self.at;
        let Some(c) = self.next() else { return Err(fault_at(from, "'", CLOSED)) };
        let code = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'e' | 'E' => '\u{1b}',
            '\\' | '\'' | '"' | '?' => c,
            'x' => self.code(2, 16, at)?,
            'u' => self.code(4, 16, at)?,
            'U' => self.code(8, 16, at)?,
            '0'..='7' => {
                self.at -= 1;
                self.code(3, 8, at)?
            }
            other => {
                text.extend(['\\', other]);
                return Ok(());
            }
        };
        text.push(code);
        Ok(())
    }

    fn code(&mut self, most: usize, radix: u32, at: usize) -> Result<char, RequestFault> {
        let mut value = 0_u32;
        let mut digits = 0;
        while let Some(digit) =
            self.peek().filter(|_| digits < most).and_then(|c| c.to_digit(radix))
        {
            value = value.saturating_mul(radix).saturating_add(digit);
            digits += 1;
            self.at += 1;
        }
        // Bytes past ASCII would be parts of a character.
        let known = char::from_u32(value).filter(|c| digits > 0 && (most > 3 || c.is_ascii()));
        known.ok_or_else(|| fault_at(at, "\\", "an escape that stands for a character"))
    }
}

/// What a shell would replace within double quotes.
fn is_expansion(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '{' | '(' | '?' | '@' | '#' | '!' | '*')
}

const CLOSED: &str = "a quote that is closed again";
const VARIABLE: &str = "the text itself: what a shell would put in its place is not known here";

#[cfg(test)]
mod tests {
    use super::words;

    fn texts(line: &str) -> Result<Vec<String>, (usize, String)> {
        let words = words(line).map_err(|fault| (fault.at.unwrap(), fault.to_string()))?;
        Ok(words.into_iter().map(|word| word.text).collect())
    }

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, expected) in [
            ("", &[][..]),
            ("  curl  a\tb\n", &["curl", "a", "b"]),
            ("a'b c'd", &["ab cd"]),
            (r#"'' "" x"#, &["", "", "x"]),
            (r#""a \"b\" \$c \n" 'a\n'"#, &[r#"a "b" $c \n"#, r"a\n"]),
            (r"a\ b \'c\'", &["a b", "'c'"]),
            ("a \\\n  -b \\\r\n c", &["a", "-b", "c"]),
            ("a\\\nb", &["ab"]),
            (r"$'it\'s \u0021\x41\101\n' 'é'", &["it's !AA\n", "é"]),
            ("\"cost: 5$\"", &["cost: 5$"]),
            ("http://h/a?b={c}", &["http://h/a?b={c}"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(texts(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn faults_point_at_the_character() {
        for (line, at, value) in [
            ("curl 'a", 6, "'"),
            ("curl a\"b c", 7, "\""),
            (r"curl $'a", 7, "'"),
            ("curl é | jq", 8, "|"),
            ("curl http://h/?a=1&b=2", 19, "&"),
            ("curl \"$HOST/a\"", 7, "$"),
            ("curl $URL", 6, "$"),
            ("curl `date`", 6, "`"),
            ("curl a\\", 7, "\\"),
            (r"curl $'\xff'", 8, "\\"),
        ] {
            let (found, text) = texts(line).unwrap_err();
            assert_eq!(found, at, "{line}: {text}");
            let begins = format!("curl, character {at}: {value} is not ");
            assert!(text.starts_with(&begins), "{line}: {text}");
        }
    }
}
