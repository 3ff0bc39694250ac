//! The API document, made from the table of routes, and its viewer.

mod examples;
mod viewer;

use std::collections::BTreeMap;

use http::Method;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Ref,
        RefOr, Required, ResponseBuilder, Schema,
        path::{OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder},
        request_body::RequestBodyBuilder,
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

use crate::{
    auth::TOKEN_HEADER,
    extract::{JavaType, NamedSchemas},
    permission::Permission,
    router::{Route, Routes},
};

pub use examples::{Example, examples};
pub(crate) use viewer::routes as viewer_routes;

const TOKEN_SCHEME: &str = "token";

/// The document of all `routes`. The same table gives the same document, byte for byte.
///
/// # Panics
/// When two types have the same name: a fault of the table, found by any test.
#[must_use]
pub fn document(routes: &Routes) -> OpenApi {
    let token = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(
        TOKEN_HEADER,
        "The token of a log-in. It may also come as query parameter or cookie of the same name.",
    )));
    let mut schemas: BTreeMap<String, RefOr<Schema>> = BTreeMap::new();
    let mut paths: BTreeMap<&str, PathItem> = BTreeMap::new();
    let examples = examples();
    for route in routes.all() {
        let named = route.input.schemas.iter().chain(&route.output.2);
        for (name, schema) in named {
            let known = schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            assert!(known == schema, "two schemas have the name {name}");
        }
        let name = format!("{} {}", route.method, route.path);
        let example = examples.iter().find(|example| example.operation == name);
        let item = PathItem::new(http_method(&route.method), operation(route, example));
        match paths.get_mut(route.path) {
            Some(known) => known.merge_operations(item),
            None => drop(paths.insert(route.path, item)),
        }
    }
    let paths = paths
        .into_iter()
        .fold(PathsBuilder::new(), |paths, (path, item)| paths.path(spelled(path), item));
    let components = schemas
        .into_iter()
        .fold(ComponentsBuilder::new(), |all, (name, schema)| all.schema(name, schema))
        .security_scheme(TOKEN_SCHEME, token);
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Longmen admin")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Manages plugins, selectors and rules, and syncs them to gateways. \
                     Application errors are HTTP 200 with a code in the body.",
                ))
                .build(),
        )
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

/// A reference to the schema of `T`, which is added to `schemas` with all that it refers to.
pub(crate) fn reference_to<T: ToSchema>(schemas: &mut NamedSchemas) -> RefOr<Schema> {
    let name = schema_name::<T>();
    T::schemas(schemas);
    schemas.push((name.clone(), T::schema()));
    RefOr::Ref(Ref::from_schema_name(name))
}

/// The name of a schema; one that is made of another type has that type's name in it too, or all
/// that are made alike would have the same.
fn schema_name<T: ToSchema>() -> String {
    let name = T::name();
    let inner = std::any::type_name::<T>().split_once('<').map(|(_, inner)| inner);
    match inner.and_then(|inner| inner.trim_end_matches('>').rsplit("::").next()) {
        Some(inner) => format!("{name}_{inner}"),
        None => name.into_owned(),
    }
}

/// The schema of a scalar.
pub(crate) fn schema_of(kind: JavaType) -> RefOr<Schema> {
    match kind {
        JavaType::String => String::schema(),
        JavaType::Integer => i32::schema(),
        JavaType::Boolean => bool::schema(),
    }
}

fn operation(route: &Route, example: Option<&Example>) -> OperationBuilder {
    let mut operation = OperationBuilder::new()
        .tag(route.tag)
        .summary(Some(route.summary))
        .operation_id(Some(operation_id(route)));
    match route.permission {
        Permission::Public => {}
        Permission::Authenticated => {
            operation = operation.security(SecurityRequirement::new(TOKEN_SCHEME, [""; 0]));
        }
        Permission::AnyOf(wanted) => {
            operation = operation
                .security(SecurityRequirement::new(TOKEN_SCHEME, [""; 0]))
                .description(Some(format!("Needs one of: {}.", wanted.join(", "))));
        }
        Permission::Own(guard) => operation = operation.description(Some(guard)),
    }
    for parameter in parameters(route, example) {
        operation = operation.parameter(parameter);
    }
    if let Some((media_type, schema)) = &route.input.body {
        let content = ContentBuilder::new()
            .schema(Some(schema.clone()))
            .example(example.and_then(|example| example.body.clone()));
        let body = RequestBodyBuilder::new()
            .content(*media_type, content.build())
            .required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    let (media_type, schema, _) = &route.output;
    let content = ContentBuilder::new()
        .schema(Some(schema.clone()))
        .example(example.map(|example| example.answer.clone()));
    let answer = ResponseBuilder::new()
        .description("The answer; a code other than 200 in it is a failure.")
        .content(*media_type, content.build());
    operation.response("200", answer.build())
}

/// The parameters of the path, then those of the query.
fn parameters(route: &Route, example: Option<&Example>) -> Vec<ParameterBuilder> {
    let of_path = path_parameters(route.path).map(|name| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(String::schema()))
            .example(example.and_then(|example| example.path_value(route.path, name)))
    });
    let of_query = route.input.query.iter().map(|parameter| {
        ParameterBuilder::new()
            .name(parameter.name.clone())
            .parameter_in(ParameterIn::Query)
            .required(if parameter.required { Required::True } else { Required::False })
            .schema(Some(schema_of(parameter.kind)))
            .example(example.and_then(|example| example.query_value(&parameter.name)))
    });
    of_path.chain(of_query).collect()
}

/// `get_namespace_list`: the method and the words of the path, unique as they are.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_ascii_lowercase();
    for segment in route.path.split('/').filter(|segment| !segment.is_empty()) {
        id.push('_');
        match segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            Some(name) => id.extend(["by_", name.trim_start_matches('*')]),
            None => id.extend(segment.chars().map(|c| if c.is_alphanumeric() { c } else { '_' })),
        }
    }
    id
}

fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| {
        Some(segment.strip_prefix('{')?.strip_suffix('}')?.trim_start_matches('*'))
    })
}

/// The path as the document spells it: a rest parameter is an ordinary one there.
fn spelled(path: &str) -> String {
    path.replace("{*", "{")
}

fn http_method(method: &Method) -> HttpMethod {
    match method.as_str() {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "DELETE" => HttpMethod::Delete,
        "PATCH" => HttpMethod::Patch,
        _ => HttpMethod::Get,
    }
}
