//! Runs of slashes in paths.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Uri};

use super::{Admission, Admitted};
use crate::chain::Inbound;

/// Makes every run of `/` in the path one; the query stays. Does nothing while switched off, and
/// nothing to paths without such a run.
///
/// Source: ShenYu 2.7.1, `switchConfig.collapseSlashes`; there the query is lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollapseSlashes(pub bool);

impl Admission for CollapseSlashes {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        if self.0
            && request.uri().path().contains("//")
            && let Some(uri) = collapsed(request.uri())
        {
            *request.uri_mut() = uri;
        }
        Admitted::Pass
    }
}

fn collapsed(uri: &Uri) -> Option<Uri> {
    let mut text = String::with_capacity(uri.path().len() + 64);
    for character in uri.path().chars() {
        if character != '/' || !text.ends_with('/') {
            text.push(character);
        }
    }
    if let Some(query) = uri.query() {
        text.push('?');
        text.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(Bytes::from(text)).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs_become_one_slash_and_the_query_stays() {
        for (sent, seen) in [
            ("/a//b", "/a/b"),
            ("//a///b//", "/a/b/"),
            ("///", "/"),
            ("/a//b?x=//&y", "/a/b?x=//&y"),
            ("http://h/a//b?c", "http://h/a/b?c"),
        ] {
            let uri: http::Uri = sent.parse().unwrap_or_else(|error| panic!("{sent}: {error}"));
            assert_eq!(super::collapsed(&uri).unwrap().to_string(), seen, "{sent}");
        }
    }
}
