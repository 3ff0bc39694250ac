//! Plugin templates, plugins of namespaces, form fields and dictionary rows.

use longmen_db::repository::namespace_plugin::{self, NamespacePluginFilter};
use longmen_db::repository::plugin::{self, PluginFilter};
use longmen_db::repository::plugin_handle::{self, NewPluginHandle};
use longmen_db::repository::{dict, namespace};
use longmen_db::{Error, Like, PageRequest};

use crate::support::{NS, TestStore, add_rule, add_selector, on_both_stores};

on_both_stores!(
    templates_are_found_and_listed,
    plugins_of_a_namespace_are_linked_changed_and_listed,
    taking_a_plugin_out_takes_its_selectors_along,
    active_plugins_are_counted_up,
    form_fields_are_stored_found_and_listed,
    dictionary_rows_are_read,
);

async fn templates_are_found_and_listed(test: TestStore) {
    let mut tx = test.store.read().await.unwrap();
    let tx = &mut tx;
    let divide = plugin::find(tx, "5").await.unwrap().unwrap();
    assert_eq!(
        (divide.name.as_str(), divide.sort, divide.role.as_str()),
        ("divide", Some(200), "Proxy")
    );
    assert!(plugin::find(tx, "7").await.unwrap().is_none());
    assert_eq!(plugin::find_by_name(tx, "divide").await.unwrap(), Some(divide));
    assert_eq!(plugin::find_many(tx, &["5", "26", "7"]).await.unwrap().len(), 2);
    assert_eq!(plugin::of_namespace(tx, NS).await.unwrap().len(), 46);

    let request = PageRequest::new(1, 12);
    let page = plugin::page(tx, &PluginFilter::default(), request).await.unwrap();
    assert_eq!((page.total, page.rows.len(), page.total_pages()), (46, 12, 4));
    let filter = PluginFilter { name: Like::contains("LOGGING"), ..PluginFilter::default() };
    assert_eq!(plugin::page(tx, &filter, request).await.unwrap().total, 10);
    let filter = PluginFilter {
        role: Like::contains("proxy"),
        enabled: Some(true),
        ..PluginFilter::default()
    };
    let names: Vec<String> = plugin::page(tx, &filter, request)
        .await
        .unwrap()
        .rows
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names, ["websocket", "divide", "tcp"], "by sort, then id by bytes");
    let filter = PluginFilter { keyword: Like::contains("mock"), ..PluginFilter::default() };
    assert_eq!(plugin::page(tx, &filter, request).await.unwrap().total, 1);
}

async fn plugins_of_a_namespace_are_linked_changed_and_listed(test: TestStore) {
    let mut uow = test.begin().await;
    namespace::insert(&mut uow, "ns-2", "two", "").await.unwrap();
    let link = namespace_plugin::link(&mut uow, "ns-2", "2").await.unwrap();
    uow.commit().await.unwrap();

    let mut uow = test.begin().await;
    let row = namespace_plugin::find(&mut uow, &link).await.unwrap().unwrap();
    assert_eq!(
        (row.name.as_str(), row.config.as_deref(), row.sort, row.enabled),
        ("waf", Some(r#"{"model":"black"}"#), Some(50), false)
    );
    let config = Some("{}");
    assert_eq!(namespace_plugin::update(&mut uow, &link, config, Some(51), true).await.unwrap(), 1);
    assert_eq!(namespace_plugin::update(&mut uow, "nope", None, None, true).await.unwrap(), 0);
    let model = namespace_plugin::models_of_namespace(&mut uow, "ns-2").await.unwrap().remove(0);
    assert_eq!((model.id.as_str(), model.name.as_str(), model.sort), ("2", "waf", Some(51)));
    assert_eq!((model.config.as_deref(), model.plugin_jar.as_deref()), (Some("{}"), Some("")));
    assert_eq!((model.enabled, model.namespace_id.as_deref()), (true, Some("ns-2")));
    assert_eq!(namespace_plugin::set_enabled(&mut uow, &[&*link, "x"], false).await.unwrap(), 1);
    let held = namespace_plugin::find_many_for_update(&mut uow, &[&*link, "x"]).await.unwrap();
    assert!(!held[0].enabled);
    let ids = namespace_plugin::ids_of_plugins(&mut uow, "ns-2", &["2", "5"]).await.unwrap();
    assert_eq!(ids, std::slice::from_ref(&link));
    let by_plugin = namespace_plugin::find_by_plugin(&mut uow, "ns-2", "2").await.unwrap();
    assert_eq!(by_plugin.map(|row| row.id), Some(link));
    assert!(namespace_plugin::find_by_plugin(&mut uow, "ns-2", "5").await.unwrap().is_none());
    assert_eq!(namespace_plugin::links_of_plugin(&mut uow, "2").await.unwrap(), 2);

    let filter = NamespacePluginFilter {
        namespace_id: Some(NS.to_owned()),
        name: Like::contains("ai"),
        not_name: Like::contains("Token"),
        enabled: Some(false),
    };
    let page = namespace_plugin::page(&mut uow, &filter, PageRequest::new(1, 2)).await.unwrap();
    assert_eq!((page.total, page.rows.len()), (4, 2));
    assert_eq!(page.rows[0].name, "aiRequestTransformer");
    let request = PageRequest::new(1, 50);
    let all = namespace_plugin::page(&mut uow, &NamespacePluginFilter::default(), request).await;
    assert_eq!(all.unwrap().total, 47);
    let again = namespace_plugin::link(&mut uow, "ns-2", "2").await.unwrap_err();
    assert!(again.is_unique_violation(), "{again}");
    drop(uow);

    let mut uow = test.begin().await;
    let lost = namespace_plugin::link(&mut uow, "nope", "2").await.unwrap_err();
    assert!(matches!(lost, Error::Reference { .. }), "{lost}");
}

async fn taking_a_plugin_out_takes_its_selectors_along(test: TestStore) {
    let mut uow = test.begin().await;
    let selector = add_selector(&mut uow, "s").await;
    let rule = add_rule(&mut uow, &selector, "r").await;
    let (links, removed) =
        namespace_plugin::delete(&mut uow, &["1801816010882822183", "nope"]).await.unwrap();
    assert_eq!((links.len(), links[0].plugin_id.as_str()), (1, "5"));
    assert_eq!((removed.selectors.len(), removed.rules.len()), (1, 1));
    uow.commit().await.unwrap();
    assert_eq!(test.mentions(&selector).await, []);
    assert_eq!(test.mentions(&rule).await, []);
    let mut tx = test.store.read().await.unwrap();
    assert_eq!(namespace_plugin::of_namespace(&mut tx, NS).await.unwrap().len(), 45);
    assert!(plugin::find(&mut tx, "5").await.unwrap().is_some(), "the template stays");
}

async fn active_plugins_are_counted_up(test: TestStore) {
    let mut uow = test.begin().await;
    add_selector(&mut uow, "s").await;
    add_selector(&mut uow, "t").await;
    let active = namespace_plugin::active(&mut uow, NS).await.unwrap();
    let divide = active.iter().find(|row| row.name == "divide").unwrap();
    assert_eq!((divide.id.as_str(), divide.handle_count, divide.selector_count), ("5", 15, 2));
    assert_eq!(active.len(), 7);
    let active = plugin::active(&mut uow).await.unwrap();
    assert_eq!(active.len(), 6);
    assert_eq!(active.iter().map(|row| row.selector_count).sum::<i64>(), 2);
}

async fn form_fields_are_stored_found_and_listed(test: TestStore) {
    let new = NewPluginHandle {
        plugin_id: "5".to_owned(),
        field: "mine".to_owned(),
        label: None,
        data_type: 2,
        handle_type: 2,
        sort: 9,
        ext_obj: None,
    };
    let mut uow = test.begin().await;
    let id = plugin_handle::insert(&mut uow, &new).await.unwrap();
    let wanted = NewPluginHandle { label: Some("Mine".to_owned()), ..new.clone() };
    assert_eq!(plugin_handle::update(&mut uow, &id, &wanted).await.unwrap(), 1);
    assert_eq!(plugin_handle::update(&mut uow, "nope", &wanted).await.unwrap(), 0);
    let row = plugin_handle::find(&mut uow, &id).await.unwrap().unwrap();
    assert_eq!((row.label.as_deref(), row.handle_type), (Some("Mine"), 2));
    let rules = plugin_handle::of_plugin(&mut uow, "5", 2).await.unwrap();
    assert_eq!(rules.last().map(|row| &row.id), Some(&id));
    let like = Like::contains("loadB");
    let request = PageRequest::new(1, 3);
    let page = plugin_handle::page(&mut uow, Some("5"), like.as_ref(), request).await.unwrap();
    assert_eq!((page.total, page.rows[0].field.as_str()), (1, "loadBalance"));
    let page = plugin_handle::page(&mut uow, Some("5"), None, request).await.unwrap();
    assert_eq!((page.total, page.rows.len()), (16, 3));
    assert_eq!(plugin_handle::page(&mut uow, None, None, request).await.unwrap().total, 423);
    assert_eq!(plugin_handle::delete(&mut uow, &[&*id, "nope"]).await.unwrap(), 1);
    plugin_handle::insert(&mut uow, &new).await.unwrap();
    let again = plugin_handle::insert(&mut uow, &new).await.unwrap_err();
    assert!(again.is_unique_violation(), "{again}");
}

async fn dictionary_rows_are_read(test: TestStore) {
    let mut tx = test.store.read().await.unwrap();
    let rows = dict::enabled_of_types(&mut tx, &["matchMode", "table", "nope"]).await.unwrap();
    let values: Vec<(&str, Option<&str>)> =
        rows.iter().map(|row| (row.dict_name.as_str(), row.dict_value.as_deref())).collect();
    assert_eq!(values, [("and", Some("0")), ("or", Some("1"))]);
    let table = dict::of_type(&mut tx, "table").await.unwrap();
    assert!(!table[0].enabled);
    assert_eq!(dict::find(&mut tx, &table[0].id).await.unwrap().as_ref(), Some(&table[0]));
    assert!(dict::find(&mut tx, "nope").await.unwrap().is_none());
}
