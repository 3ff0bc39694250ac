//! From the list of routes to a service.

use std::collections::BTreeMap;

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use http::Method;

use super::{Route, Routes};
use crate::{
    auth::PathPatterns,
    error::ApiError,
    permission::Permission,
    state::AppState,
    v1::{Fault, Told},
};

/// What must be known of the routes once they are built.
#[derive(Debug)]
pub struct RouteTable {
    /// Paths that ask for no token.
    pub open: PathPatterns,
}

impl Routes {
    /// Builds the service, and what the token check needs to know.
    ///
    /// Where a fixed path and one with parameters overlap (`/selector/batch`, `/selector/{id}`), a
    /// method that only the latter has is served by it there too, as the reference does.
    ///
    /// # Panics
    /// When two routes share method and path: a fault of the table, found by any test.
    pub fn build(self) -> (Router<AppState>, RouteTable) {
        let open = PathPatterns::new(
            self.routes
                .iter()
                .filter(|route| matches!(route.permission, Permission::Public | Permission::Own(_)))
                .map(|route| glob(route.path)),
        );
        let mut by_path: BTreeMap<&'static str, Vec<Route>> = BTreeMap::new();
        for route in self.routes {
            by_path.entry(route.path).or_default().push(route);
        }
        let mut router = Router::new();
        for (path, own) in &by_path {
            let mut served: Vec<(Method, &MethodRouter<AppState>)> = Vec::new();
            for route in own {
                assert!(
                    served.iter().all(|(method, _)| *method != route.method),
                    "{} {path} is registered twice",
                    route.method
                );
                served.push((route.method.clone(), &route.serve));
            }
            let broader = by_path.iter().filter(|(other, _)| covers(other, path));
            for route in broader.flat_map(|(_, routes)| routes) {
                if served.iter().all(|(method, _)| *method != route.method) {
                    served.push((route.method.clone(), &route.serve));
                }
            }
            router = router.route(path, with_refusal(served));
        }
        let router = router.fallback(async || -> Response { ApiError::Unreadable.into_response() });
        (router, RouteTable { open })
    }
}

/// One path with all its methods, and the refusal of the others.
fn with_refusal(served: Vec<(Method, &MethodRouter<AppState>)>) -> MethodRouter<AppState> {
    let mut names: Vec<&str> = Vec::new();
    for known in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        if served.iter().any(|(method, _)| method.as_str() == known) {
            names.push(known);
        }
    }
    let supported: String = names.iter().map(|name| format!("{name} ")).collect();
    served
        .into_iter()
        .fold(MethodRouter::new(), |all, (_, serve)| all.merge(serve.clone()))
        .fallback(async move |method: Method| -> Response {
            let message = format!(
                "{method} method is not supported for this request. Supported methods are \
                 {supported}"
            );
            let mut response = ApiError::refused(message.clone()).into_response();
            response.extensions_mut().insert(Told { fault: Fault::MethodNotAllowed, message });
            response
        })
}

/// Whether `broad`, which has parameters, matches every path that `narrow` matches, and is another.
fn covers(broad: &str, narrow: &str) -> bool {
    let is_parameter = |segment: &str| segment.starts_with('{');
    broad != narrow
        && broad.split('/').count() == narrow.split('/').count()
        && broad
            .split('/')
            .zip(narrow.split('/'))
            .all(|(broad, narrow)| broad == narrow || is_parameter(broad) && !is_parameter(narrow))
}

/// A route's path as an ant pattern.
fn glob(path: &str) -> String {
    let segments: Vec<_> = path
        .split('/')
        .map(|segment| match segment {
            rest if rest.starts_with("{*") => "**",
            one if one.starts_with('{') => "*",
            literal => literal,
        })
        .collect();
    segments.join("/")
}

#[cfg(test)]
mod tests {
    use super::{covers, glob};

    #[test]
    fn a_path_with_parameters_covers_the_fixed_one() {
        assert!(covers("/selector/{id}", "/selector/batch"));
        assert!(covers("/a/{x}/{y}", "/a/b/{y}"));
        assert!(!covers("/selector/{id}", "/selector/{other}"));
        assert!(!covers("/selector/batch", "/selector/{id}"));
        assert!(!covers("/selector/{id}", "/selector/a/b"));
    }

    #[test]
    fn parameters_become_wild_cards() {
        assert_eq!(glob("/a/{x}/b"), "/a/*/b");
        assert_eq!(glob("/swagger-ui/{*rest}"), "/swagger-ui/**");
    }
}
