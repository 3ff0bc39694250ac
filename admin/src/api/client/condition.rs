//! The conditions of registered selectors and rules.

use longmen_core::model::Condition;

/// All that begins with the name of the selector.
pub(super) fn below(selector_name: &str) -> Condition {
    let value = format!("{}/", selector_name.trim_end_matches('/'));
    uri("startsWith", value)
}

/// Everything below a context path.
pub(super) fn all_below(context_path: &str) -> Condition {
    uri("pathPattern", format!("{context_path}/**"))
}

/// Everything, as the reference has it for tools.
pub(super) fn everything() -> Condition {
    uri("match", "/**".to_owned())
}

/// The path of an API.
///
/// Source: ShenYu 2.7.1, executed; but for escaped braces, which it leaves alone, so that a rule made
/// of `/save/{id}` never matches a request.
pub(super) fn of_path(path: &str) -> Condition {
    let value = without_variables(&with_braces(path));
    let operator = if value.ends_with('/') {
        "startsWith"
    } else if value.ends_with("/**") {
        "pathPattern"
    } else if value.find('*').is_some_and(|at| at > 1) {
        "match"
    } else {
        "="
    };
    uri(operator, value)
}

fn uri(operator: &str, value: String) -> Condition {
    Condition {
        param_type: "uri".to_owned(),
        operator: operator.to_owned(),
        param_name: Some("/".to_owned()),
        param_value: Some(value),
    }
}

/// Undoes the escapes of braces: the SDK escapes the whole path.
fn with_braces(path: &str) -> String {
    path.replace("%7B", "{").replace("%7b", "{").replace("%7D", "}").replace("%7d", "}")
}

/// Each run of `/{variable}` becomes `/**`. A variable may hold a pattern with braces of its own.
fn without_variables(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    let mut in_run = false;
    while !rest.is_empty() {
        let variable = rest.starts_with("/{").then(|| closing_brace(&rest[1..])).flatten();
        if let Some(length) = variable {
            if !in_run {
                out.push_str("/**");
            }
            in_run = true;
            rest = &rest[1 + length..];
            continue;
        }
        in_run = false;
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let next = rest[first..].find("/{").map_or(rest.len(), |at| first + at);
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    out
}

/// How many bytes the text in braces has with which `text` begins.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_conditions_as_the_reference_makes_them() {
        for (path, operator, value) in [
            ("/http/order/save", "=", "/http/order/save"),
            ("/http/test/**", "pathPattern", "/http/test/**"),
            ("/http/order/path/**/name", "match", "/http/order/path/**/name"),
            ("/http/order/%20/uri/test", "=", "/http/order/%20/uri/test"),
            ("/ws/", "startsWith", "/ws/"),
            ("/a/{id}", "pathPattern", "/a/**"),
            ("/a/{id}/{name}", "pathPattern", "/a/**"),
            ("/a/{id}/b/{name}/c", "match", "/a/**/b/**/c"),
            ("/a/{id:[0-9]{2}}", "pathPattern", "/a/**"),
            ("/a/{id}.json", "match", "/a/**.json"),
            ("/a/%7Bid%7D", "pathPattern", "/a/**"),
            ("/a/%7bid%7d/x", "match", "/a/**/x"),
            ("/a/{open", "=", "/a/{open"),
            ("/*", "=", "/*"),
            ("/你/{id}/好", "match", "/你/**/好"),
            ("你/{id}", "pathPattern", "你/**"),
            ("", "=", ""),
        ] {
            let made = of_path(path);
            assert_eq!(
                (made.operator.as_str(), made.param_value.as_deref()),
                (operator, Some(value)),
                "{path}"
            );
        }
        assert_eq!(below("/http").param_value.as_deref(), Some("/http/"));
        assert_eq!(below("/").param_value.as_deref(), Some("/"));
        assert_eq!(all_below("/http").param_value.as_deref(), Some("/http/**"));
    }
}
