//! The viewer of the API document. Its files are part of the program: nothing comes from a network.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use http::{Method, StatusCode, header};
use utoipa_swagger_ui::Config;

use crate::{permission::Permission, router::Routes, state::AppState};

/// The document itself, and the pages around it.
pub(crate) fn routes() -> Routes {
    Routes::new("document")
        .raw(
            Method::GET,
            "/v3/api-docs",
            Permission::Public,
            "The API document, in OpenAPI 3.1",
            get(document),
        )
        .raw(Method::GET, "/", Permission::Public, "The viewer of this document", get(index))
        .raw(
            Method::GET,
            "/swagger-ui.html",
            Permission::Public,
            "Leads to the viewer",
            get(async |State(state): State<AppState>| {
                Redirect::to(&format!(
                    "{}/swagger-ui/index.html",
                    state.config().server.context_path
                ))
            }),
        )
        .raw(
            Method::GET,
            "/swagger-ui/{*file}",
            Permission::Public,
            "Files of the viewer",
            get(file),
        )
}

async fn document(request: Request) -> Response {
    match request.extensions().get::<Arc<str>>() {
        Some(document) => {
            ([(header::CONTENT_TYPE, "application/json")], document.to_string()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The viewer at the root; its files are found beside it.
async fn index(State(state): State<AppState>) -> Response {
    let Some((_, page)) = read("index.html", &state) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let base = format!("<head><base href=\"{}/swagger-ui/\">", state.config().server.context_path);
    let page = String::from_utf8_lossy(&page).replacen("<head>", &base, 1);
    ([(header::CONTENT_TYPE, "text/html;charset=utf-8")], page).into_response()
}

async fn file(State(state): State<AppState>, Path(name): Path<String>) -> Response {
    match read(&name, &state) {
        Some((content_type, bytes)) => {
            ([(header::CONTENT_TYPE, content_type)], bytes).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn read(name: &str, state: &AppState) -> Option<(String, Vec<u8>)> {
    let url = format!("{}/v3/api-docs", state.config().server.context_path);
    let config = Config::new([url]);
    let file = utoipa_swagger_ui::serve(name, Arc::new(config)).ok().flatten()?;
    Some((file.content_type, file.bytes.into_owned()))
}
