//! What a successful call answers.
//!
//! Consoles show `message` and read `data`, so which of the two an endpoint fills is part of its
//! contract. The constructors are named after the four patterns of the reference.

use std::borrow::Cow;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::header;
use serde::Serialize;
use utoipa::{PartialSchema as _, ToSchema, openapi::ObjectBuilder};

/// A success envelope: `{code: 200, message, data}`, all three always present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply<T> {
    /// 200.
    code: i32,
    /// Text for the operator, if the endpoint has one.
    message: Option<Cow<'static, str>>,
    /// The payload, if the endpoint has one.
    data: Option<T>,
}

/// `data` of endpoints that answer a text alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct NoData;

impl<T> Reply<T> {
    /// A text and a payload.
    pub fn new(message: impl Into<Cow<'static, str>>, data: T) -> Self {
        Self { code: 200, message: Some(message.into()), data: Some(data) }
    }

    /// A text and a payload that may be absent.
    pub fn maybe(message: impl Into<Cow<'static, str>>, data: Option<T>) -> Self {
        Self { code: 200, message: Some(message.into()), data }
    }

    /// A payload; `message` is null.
    pub const fn data(data: T) -> Self {
        Self { code: 200, message: None, data: Some(data) }
    }
}

impl Reply<NoData> {
    /// A text; `data` is null.
    pub fn text(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: 200, message: Some(message.into()), data: None }
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

/// A bare object, as the endpoints below `/v1` answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain<T>(pub T);

impl<T: Serialize> IntoResponse for Plain<T> {
    fn into_response(self) -> Response {
        Json(self.0).into_response()
    }
}

impl<T: Serialize + ToSchema + Send> Answer for Plain<T> {
    fn describe() -> Described {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        ("application/json", T::schema(), schemas)
    }
}

/// A bare text, as the registration endpoints answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainText(pub &'static str);

impl IntoResponse for PlainText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain;charset=UTF-8")], self.0).into_response()
    }
}

/// What a handler may answer, with its place in the API document.
pub trait Answer: IntoResponse + Send {
    /// The media type and schema of the answer, and the schemas that it refers to.
    fn describe() -> Described;
}

/// Media type, schema, and referenced schemas by name.
pub type Described = (
    &'static str,
    utoipa::openapi::RefOr<utoipa::openapi::Schema>,
    Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>,
);

impl<T: Serialize + ToSchema + Send> Answer for Reply<T> {
    fn describe() -> Described {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        let envelope = ObjectBuilder::new()
            .property("code", i32::schema())
            .required("code")
            .property("message", Option::<String>::schema())
            .required("message")
            .property("data", T::schema())
            .required("data");
        ("application/json", envelope.build().into(), schemas)
    }
}

impl Answer for PlainText {
    fn describe() -> Described {
        ("text/plain", String::schema(), Vec::new())
    }
}

/// Any other answer; described as a free object.
impl Answer for Response {
    fn describe() -> Described {
        ("application/octet-stream", utoipa::openapi::schema::empty().into(), Vec::new())
    }
}
