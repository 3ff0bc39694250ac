//! Sets of routes, as the comparison of routers that Easegress published has them.

use md5::{Digest as _, Md5};
use serde::Serialize;

use crate::admin_api::PathCondition;

/// How the routes of a set are made from their numbers, which count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum RouteSet {
    /// Exactly the path `/<MD5 of the number>`.
    Static,
    /// All paths that begin with `/<MD5 of the number>`; asked for with `/suffix` behind it.
    Prefix,
    /// A path with a variable in front of the number: `/users/{username}/<number>`.
    Variable,
}

impl RouteSet {
    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Prefix => "prefix",
            Self::Variable => "variable",
        }
    }

    /// What the rule of a route asks of the path.
    #[must_use]
    pub fn condition(self, number: u32) -> PathCondition {
        match self {
            Self::Static => PathCondition::equal(hashed(number)),
            Self::Prefix => PathCondition::starts_with(hashed(number)),
            Self::Variable => PathCondition::pattern(format!("/users/{{username}}/{number}")),
        }
    }

    /// A path that the route takes, and no other route of its set.
    #[must_use]
    pub fn path(self, number: u32) -> String {
        match self {
            Self::Static => hashed(number),
            Self::Prefix => format!("{}/suffix", hashed(number)),
            Self::Variable => format!("/users/longmen/{number}"),
        }
    }
}

/// `/` and the MD5 of the number's decimal digits, in lower-case hexadecimal ones.
fn hashed(number: u32) -> String {
    format!("/{:x}", Md5::digest(number.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const ALL: [RouteSet; 3] = [RouteSet::Static, RouteSet::Prefix, RouteSet::Variable];

    /// The hashes are md5sum's; that of 5000 is the path of the published calls.
    #[test]
    fn routes_are_the_published_ones() {
        let [first, middle] =
            ["/c4ca4238a0b923820dcc509a6f75849b", "/a35fe7f7fe8217b4369a0af4244d1fca"];
        let (fixed, prefix, variable) = (RouteSet::Static, RouteSet::Prefix, RouteSet::Variable);
        for (number, hash) in [(1, first), (5_000, middle)] {
            assert_eq!(fixed.condition(number), PathCondition::equal(hash));
            assert_eq!(fixed.path(number), hash);
            assert_eq!(prefix.condition(number), PathCondition::starts_with(hash));
            assert_eq!(prefix.path(number), format!("{hash}/suffix"));
        }
        assert_eq!(
            variable.condition(5_000),
            PathCondition { operator: "pathPattern", value: "/users/{username}/5000".into() }
        );
        assert_eq!(variable.path(5_000), "/users/longmen/5000");
        assert_eq!(fixed.path(10_000), "/b7a782741f667201b54880c925faec4b");
    }

    #[test]
    fn no_two_routes_of_a_set_are_alike() {
        for set in ALL {
            let values: HashSet<String> =
                (1..=10_000).map(|number| set.condition(number).value).collect();
            let paths: HashSet<String> = (1..=10_000).map(|number| set.path(number)).collect();
            assert_eq!((values.len(), paths.len()), (10_000, 10_000), "{set:?}");
        }
    }
}
