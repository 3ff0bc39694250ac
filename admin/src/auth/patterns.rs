//! Ant patterns over request paths, for the list of paths that ask for no token.

/// A list of ant patterns: `?` one character, `*` within a segment, `**` any number of segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathPatterns(Vec<String>);

impl PathPatterns {
    /// The patterns, blank ones left out.
    pub fn new(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self(
            patterns
                .into_iter()
                .map(|pattern| pattern.as_ref().trim().to_owned())
                .filter(|pattern| !pattern.is_empty())
                .collect(),
        )
    }

    /// Whether one of them matches the whole of `path`.
    ///
    /// A path with an escape or a dot segment never does: what is open must be spelled plainly.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let plain = !path.contains('%')
            && !path.contains('\\')
            && !path.contains(';')
            && !path.split('/').any(|segment| segment == "." || segment == "..");
        plain && self.0.iter().any(|pattern| segments_match(pattern, path))
    }
}

fn segments_match(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    // reached[i]: the pattern so far matches the first i segments of the path.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        if part == "**" {
            let mut any = false;
            for (index, slot) in next.iter_mut().enumerate() {
                any |= reached[index];
                *slot = any;
            }
        } else {
            for (index, segment) in path.iter().enumerate() {
                next[index + 1] = reached[index] && segment_matches(part, segment);
            }
        }
        reached = next;
    }
    reached[path.len()]
}

/// `?` and `*` within one segment, without backtracking past the last star.
fn segment_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            p = at + 1;
            t = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::PathPatterns;

    #[test]
    fn ant_patterns() {
        let list = PathPatterns::new([
            "/",
            "/favicon.*",
            "/static/**",
            "/index**",
            "/platform/login",
            "/swagger-ui/**",
            "/a/*/c",
            " ",
        ]);
        for (path, open) in [
            ("/", true),
            ("/favicon.ico", true),
            ("/static/js/app.js", true),
            ("/static", true),
            ("/index", true),
            ("/index.html", true),
            ("/index/x", false),
            ("/platform/login", true),
            ("/platform/login/", false),
            ("/platform/logins", false),
            ("/platform", false),
            ("/a/b/c", true),
            ("/a/c", false),
            ("/a/b/b/c", false),
            ("/namespace/list", false),
            ("/static/../namespace/list", false),
            ("/static/%2e%2e/namespace/list", false),
            ("/swagger-ui/;/../x", false),
            ("", false),
        ] {
            assert_eq!(list.matches(path), open, "{path}");
        }
    }
}
