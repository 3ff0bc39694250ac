//! Path parameters.

use super::{Bind, Incoming, InputDoc};
use crate::error::ApiError;

/// The path parameters of a call: one `String`, or a pair of them, in the order of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path<T>(pub T);

impl Bind for Path<String> {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        Ok(Self(nth(request, 0)))
    }

    fn describe(_doc: &mut InputDoc) {}
}

impl Bind for Path<(String, String)> {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        Ok(Self((nth(request, 0), nth(request, 1))))
    }

    fn describe(_doc: &mut InputDoc) {}
}

/// The parameter at `index`; empty when the path of the route has fewer, which a test of the route
/// table rules out.
fn nth(request: &Incoming, index: usize) -> String {
    request.path.get(index).map(|(_, value)| value.clone()).unwrap_or_default()
}
