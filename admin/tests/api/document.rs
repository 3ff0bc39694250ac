//! The API document and its viewer.

use std::{fs, path::Path};

use longmen_admin::{api, openapi};

use crate::support::TestAdmin;

/// The checked-in document must be the one of the code. `UPDATE_OPENAPI=1` writes it.
#[test]
fn the_checked_in_document_is_current() {
    let document = openapi::document(&api::routes());
    let mut text = serde_json::to_string_pretty(&document).unwrap();
    text.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "openapi.json is old: run the test with UPDATE_OPENAPI=1");
}

/// Every reference in the document leads somewhere.
#[test]
fn references_resolve() {
    let document = serde_json::to_value(openapi::document(&api::routes())).unwrap();
    let mut missing = Vec::new();
    collect_references(&document, &mut |reference| {
        let pointer = reference.trim_start_matches('#');
        if document.pointer(pointer).is_none() {
            missing.push(reference.to_owned());
        }
    });
    assert!(missing.is_empty(), "references to nothing: {missing:?}");
}

fn collect_references(value: &serde_json::Value, found: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::Object(members) => {
            if let Some(serde_json::Value::String(reference)) = members.get("$ref") {
                found(reference);
            }
            members.values().for_each(|value| collect_references(value, found));
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|value| collect_references(value, found));
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_viewer_needs_no_token_and_no_network() {
    let admin = TestAdmin::start().await;
    let page = admin.call("GET", "/", &[], None).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("<base href=\"/swagger-ui/\">"), "{}", page.text);
    for file in page.text.split('"').filter(|part| part.ends_with(".js") || part.ends_with(".css"))
    {
        assert!(!file.contains("://"), "{file} is not ours");
        let path = format!("/swagger-ui/{}", file.trim_start_matches("./"));
        assert_eq!(admin.call("GET", &path, &[], None).await.status, 200, "{path}");
    }
    let script = admin.call("GET", "/swagger-ui/swagger-initializer.js", &[], None).await;
    assert!(script.text.contains("/v3/api-docs"), "{}", script.text);
    let document = admin.call("GET", "/v3/api-docs", &[], None).await;
    assert!(document.json.unwrap()["paths"]["/platform/login"]["get"].is_object());
    admin.stop().await;
}
