//! Bodies: JSON objects, lists of ids, forms.

use std::future::Future;

use longmen_db::repository::namespace;
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::{PartialSchema, ToSchema};

use super::{Bind, Incoming, InputDoc, QueryArgs, Violations, lenient, read_json};
use crate::{
    error::{ApiError, ApiResult},
    state::AppState,
};

/// A JSON body with rules on its fields.
pub trait RequestBody: DeserializeOwned + ToSchema + Send + Sync {
    /// Notes each violated rule, those that ask the store included.
    ///
    /// # Errors
    /// Only failures of the store; violations go to `rules`.
    fn check(
        &self,
        state: &AppState,
        rules: &mut Violations,
    ) -> impl Future<Output = ApiResult<()>> + Send;
}

/// A JSON body whose field rules hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body<T>(pub T);

impl<T: RequestBody> Bind for Body<T> {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        let body: T = read_json(&request.body)?;
        let mut rules = Violations::new();
        body.check(&request.state, &mut rules).await?;
        rules.into_body_result()?;
        Ok(Self(body))
    }

    fn describe(doc: &mut InputDoc) {
        describe_json::<T>(doc);
    }
}

/// A form: `application/x-www-form-urlencoded` or `multipart/form-data`, and the query.
pub trait RequestForm: Sized + Send + Sync {
    /// Names, types, and whether a call without them fails.
    const FIELDS: &'static [(&'static str, super::JavaType, bool)];

    /// Reads the fields and notes each violated rule.
    ///
    /// # Errors
    /// Only failures of the store and fields of the wrong type; violations go to `rules`.
    fn read(
        state: &AppState,
        fields: &QueryArgs,
        rules: &mut Violations,
    ) -> impl Future<Output = ApiResult<Self>> + Send;
}

/// A form whose field rules hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form<T>(pub T);

impl<T: RequestForm> Bind for Form<T> {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        let content_type = request.headers.get(http::header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let body = match super::multipart::fields(content_type, &request.body) {
            Some(fields) => QueryArgs::from_pairs(fields),
            None => QueryArgs::parse(&request.body),
        };
        super::nul::refuse_in_pairs(body.pairs())?;
        let fields = request.query.clone().and(body);
        let mut rules = Violations::new();
        let form = T::read(&request.state, &fields, &mut rules).await?;
        rules.into_body_result()?;
        Ok(Self(form))
    }

    fn describe(doc: &mut InputDoc) {
        let mut object = utoipa::openapi::ObjectBuilder::new();
        for &(name, kind, required) in T::FIELDS {
            object = object.property(name, crate::openapi::schema_of(kind));
            if required {
                object = object.required(name);
            }
        }
        doc.body = Some(("application/x-www-form-urlencoded", object.build().into()));
    }
}

/// A list of ids, sent as a JSON array; strings and numbers alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids(pub Vec<String>);

impl Bind for Ids {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct Id(#[serde(deserialize_with = "lenient::opt_string")] Option<String>);
        let ids: Vec<Id> = read_json(&request.body)?;
        Ok(Self(ids.into_iter().map(|id| id.0.unwrap_or_default()).collect()))
    }

    fn describe(doc: &mut InputDoc) {
        doc.body = Some(("application/json", <Vec<String> as PartialSchema>::schema()));
    }
}

impl Ids {
    /// The rules on the list, checked after the permission: it is not empty and no id is blank.
    ///
    /// # Errors
    /// The texts of the reference's handler `method`, whose parameter is named `ids`.
    pub fn checked(self, method: &str) -> ApiResult<Vec<String>> {
        let mut rules = Violations::new();
        if self.0.is_empty() {
            rules.add("ids", "must not be empty");
        }
        for (index, id) in self.0.iter().enumerate() {
            if id.trim().is_empty() {
                rules.add(format!("ids[{index}].<list element>"), "must not be blank");
            }
        }
        rules.into_parameter_result(method)?;
        Ok(self.0)
    }
}

/// The body of batch switches: ids, the wanted state, and where the objects are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchEnabled {
    /// Ids of the objects.
    #[serde(default)]
    pub ids: Option<Vec<String>>,
    /// The wanted state.
    #[serde(default, deserialize_with = "lenient::opt_bool")]
    pub enabled: Option<bool>,
    /// The namespace of the objects.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

impl RequestBody for BatchEnabled {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_empty("ids", self.ids.as_deref());
        rules.not_null("enabled", self.enabled.as_ref());
        Ok(())
    }
}

/// The body of batch deletions: ids and the namespace they are in.
///
/// A plain list of ids is taken too, as 2.6.1 clients send it; it means the default namespace.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BatchIds {
    /// Ids of the objects.
    pub ids: Option<Vec<String>>,
    /// The namespace of the objects.
    pub namespace_id: Option<String>,
}

impl<'de> Deserialize<'de> for BatchIds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a list of ids, or an object with ids and namespaceId"
        )]
        enum Shape {
            List(Vec<String>),
            #[serde(rename_all = "camelCase")]
            Object {
                #[serde(default)]
                ids: Option<Vec<String>>,
                #[serde(default, deserialize_with = "lenient::opt_string")]
                namespace_id: Option<String>,
            },
        }
        Ok(match Shape::deserialize(deserializer)? {
            Shape::List(ids) => Self {
                ids: Some(ids),
                namespace_id: Some(longmen_core::model::DEFAULT_NAMESPACE.to_owned()),
            },
            Shape::Object { ids, namespace_id } => Self { ids, namespace_id },
        })
    }
}

impl RequestBody for BatchIds {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_null("ids", self.ids.as_ref());
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        let found = match self.namespace_id.as_deref() {
            Some(namespace_id) => {
                namespace::find(&mut *state.store().read().await?, namespace_id).await?.is_some()
            }
            None => false,
        };
        rules.exists("namespaceId", found, "namespaceId is not existed");
        Ok(())
    }
}

impl BatchIds {
    /// The ids and the namespace.
    #[must_use]
    pub fn into_parts(self) -> (Vec<String>, String) {
        (self.ids.unwrap_or_default(), self.namespace_id.unwrap_or_default())
    }
}

fn describe_json<T: ToSchema>(doc: &mut InputDoc) {
    doc.body = Some(("application/json", crate::openapi::reference_to::<T>(&mut doc.schemas)));
}
