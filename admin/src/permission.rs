//! Who may call an endpoint.

use std::collections::BTreeSet;

/// What a caller needs. Every route is registered with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// No token is asked for.
    Public,
    /// Any valid token.
    Authenticated,
    /// A valid token whose user holds at least one of these permission strings, or is `admin`.
    AnyOf(&'static [&'static str]),
    /// No token is asked for here, because the handler checks something else, which this names.
    Own(&'static str),
}

/// The name that passes every check; the name is what counts, not the roles.
pub const SUPER_USER: &str = "admin";

/// The permission strings of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted(BTreeSet<String>);

impl Granted {
    /// The strings that remain after `reserved`, those of the super user alone, are taken away.
    pub fn new(strings: impl IntoIterator<Item = String>, reserved: &[String]) -> Self {
        Self(
            strings
                .into_iter()
                .filter(|string| !string.is_empty() && !reserved.contains(string))
                .collect(),
        )
    }

    /// Whether one of `wanted` is among them.
    #[must_use]
    pub fn any_of(&self, wanted: &[&str]) -> bool {
        wanted.iter().any(|wanted| self.0.contains(*wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_strings_are_never_granted() {
        let strings = ["system:role:add", "system:plugin:edit", ""].map(str::to_owned);
        let granted = Granted::new(strings, &["system:role:add".to_owned()]);
        assert!(!granted.any_of(&["system:role:add"]));
        assert!(granted.any_of(&["system:role:add", "system:plugin:edit"]));
        assert!(!granted.any_of(&[""]));
        assert!(!granted.any_of(&[]));
    }
}
