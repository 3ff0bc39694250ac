//! Reading requests as the reference reads them.
//!
//! A handler's input is bound *before* its permission is checked, and parameter rules are checked
//! after it: that order is part of the contract, and it is why endpoints do not use the framework's
//! extractors but [`Bind`], which the router calls at the right moment. A caller without permission
//! who sends a bad body is told about the body.
//!
//! Source: ShenYu 2.7.1 admin, order of checks as executed.

mod body;
mod json;
mod multipart;
mod nul;
mod params;
mod percent;
mod query;
mod violations;

pub mod lenient;

use std::{borrow::Cow, future::Future};

use bytes::Bytes;
use http::HeaderMap;
use utoipa::openapi::{RefOr, Schema};

use crate::{error::ApiError, state::AppState};

pub use body::{BatchEnabled, BatchIds, Body, Form, Ids, RequestBody, RequestForm};
pub(crate) use json::read_json;
pub use params::Path;
pub(crate) use percent::path_segment;
pub use query::{FromQuery, JavaType, Query, QueryArgs};
pub use violations::Violations;
pub(crate) use violations::too_long;

/// A request, taken apart and with its body read.
#[derive(Debug)]
pub struct Incoming {
    /// The shared parts of the service.
    pub state: AppState,
    /// Path parameters with their names, in the order of the path, percent-decoded.
    pub path: Vec<(&'static str, String)>,
    /// Query parameters, decoded, in order.
    pub query: QueryArgs,
    /// Headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Incoming {
    /// Refuses U+0000 in the path and in the query; bodies are looked at where they are read.
    ///
    /// # Errors
    /// Field, value and expectation.
    pub(crate) fn refuse_nul(&self) -> Result<(), ApiError> {
        let path = self.path.iter().map(|(name, value)| (*name, value.as_str()));
        nul::refuse_in_pairs(path.chain(self.query.pairs()))
    }
}

/// The schemas that a schema refers to, by name.
pub type NamedSchemas = Vec<(String, RefOr<Schema>)>;

/// A parameter of an operation, for the API document.
#[derive(Debug, Clone)]
pub struct ParameterDoc {
    /// Its name on the wire.
    pub name: Cow<'static, str>,
    /// Whether a call without it fails.
    pub required: bool,
    /// Its type.
    pub kind: JavaType,
}

/// What an input says about itself in the API document.
#[derive(Default)]
pub struct InputDoc {
    /// Query parameters.
    pub query: Vec<ParameterDoc>,
    /// Media type and schema of the body.
    pub body: Option<(&'static str, RefOr<Schema>)>,
    /// Schemas that the body refers to.
    pub schemas: NamedSchemas,
}

impl std::fmt::Debug for InputDoc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputDoc").field("query", &self.query).finish_non_exhaustive()
    }
}

/// A part of a handler's input.
///
/// Inputs combine as tuples of up to three, bound from left to right.
pub trait Bind: Sized + Send {
    /// Reads this part of the request and checks the rules on its fields.
    ///
    /// # Errors
    /// The refusal the client is to see: unreadable, missing, of the wrong type, or the list of
    /// violated field rules.
    fn bind(request: &Incoming) -> impl Future<Output = Result<Self, ApiError>> + Send;

    /// Adds this part to the description of its operation.
    fn describe(doc: &mut InputDoc);
}

impl Bind for () {
    async fn bind(_request: &Incoming) -> Result<Self, ApiError> {
        Ok(())
    }

    fn describe(_doc: &mut InputDoc) {}
}

impl<A: Bind, B: Bind> Bind for (A, B) {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        Ok((A::bind(request).await?, B::bind(request).await?))
    }

    fn describe(doc: &mut InputDoc) {
        A::describe(doc);
        B::describe(doc);
    }
}

impl<A: Bind, B: Bind, C: Bind> Bind for (A, B, C) {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        Ok((A::bind(request).await?, B::bind(request).await?, C::bind(request).await?))
    }

    fn describe(doc: &mut InputDoc) {
        A::describe(doc);
        B::describe(doc);
        C::describe(doc);
    }
}
