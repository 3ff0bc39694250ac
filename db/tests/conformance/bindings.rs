//! Discoveries, bindings, upstreams and raw ports.

use longmen_core::sync::{Event, Group};
use longmen_db::repository::binding::{self, Bound, NewBinding, UseDiscovery};
use longmen_db::repository::discovery::{self, NewDiscovery};
use longmen_db::repository::proxy_selector::{self, NewProxySelector};
use longmen_db::repository::upstream::{self, NewUpstream};
use longmen_db::{Error, Like, PageRequest, UnitOfWork};

use crate::support::{NS, TestStore, add_selector, new_upstream, on_both_stores};

on_both_stores!(
    a_binding_gives_a_selector_its_upstreams,
    upstreams_are_added_changed_replaced_and_deleted,
    a_discovery_of_a_plugin_outlives_its_selectors,
    raw_ports_come_and_go_with_their_upstreams,
    a_second_binding_of_a_selector_is_refused,
);

fn local(level: &str) -> NewDiscovery {
    NewDiscovery {
        discovery_name: "local".to_owned(),
        discovery_level: level.to_owned(),
        plugin_name: "divide".to_owned(),
        namespace_id: NS.to_owned(),
        discovery_type: "local".to_owned(),
        server_list: String::new(),
        props: Some("{}".to_owned()),
    }
}

fn new_binding(discovery: UseDiscovery, urls: &[&str]) -> NewBinding {
    NewBinding {
        discovery,
        plugin_name: "divide".to_owned(),
        handler: String::new(),
        listener_node: Some(String::new()),
        props: Some("{}".to_owned()),
        upstreams: urls.iter().map(|url| new_upstream(url)).collect(),
    }
}

/// Binds a selector to a discovery of its own; out: the id of the handler.
pub(crate) async fn bind(uow: &mut UnitOfWork, selector_id: &str, urls: &[&str]) -> String {
    try_bind(uow, selector_id, urls).await.unwrap()
}

/// As [`bind`], which may be refused.
pub(crate) async fn try_bind(
    uow: &mut UnitOfWork,
    selector_id: &str,
    urls: &[&str],
) -> longmen_db::Result<String> {
    let new = new_binding(UseDiscovery::New(local("0")), urls);
    Ok(binding::insert(uow, Bound::Selector(selector_id), &new).await?.handler.id)
}

/// As [`try_bind`], for a raw port.
pub(crate) async fn bind_port(
    uow: &mut UnitOfWork,
    port_id: &str,
    urls: &[&str],
) -> longmen_db::Result<String> {
    let new = new_binding(UseDiscovery::New(local("0")), urls);
    Ok(binding::insert(uow, Bound::ProxySelector(port_id), &new).await?.handler.id)
}

pub(crate) fn new_port() -> NewProxySelector {
    NewProxySelector {
        name: "mysql".to_owned(),
        plugin_name: "tcp".to_owned(),
        proxy_type: Some("tcp".to_owned()),
        forward_port: Some(9499),
        props: Some(r#"{"loadBalance":"random"}"#.to_owned()),
        namespace_id: NS.to_owned(),
    }
}

async fn a_binding_gives_a_selector_its_upstreams(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let handler = bind(&mut uow, &id, &["127.0.0.1:2", "127.0.0.1:1"]).await;
    let binding = binding::load(&mut uow, &handler).await.unwrap().unwrap();
    binding.record_created(&mut uow);
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    assert_eq!(binding.announcement.id, id);
    assert_eq!(binding.announcement.name, "orders");
    assert_eq!(binding.announcement.plugin_name, "divide");
    assert_eq!(binding.announcement.proxy_type, None);
    assert_eq!(binding.upstreams.selector_id, id);
    assert_eq!(binding.upstreams.namespace_id.as_deref(), Some(NS));
    let urls: Vec<&str> =
        binding.upstreams.upstreams().iter().map(|upstream| upstream.url.as_str()).collect();
    assert_eq!(urls, ["127.0.0.1:2", "127.0.0.1:1"], "as they were added");
    let first = &binding.upstreams.upstreams()[0];
    assert_eq!(first.date_created.as_deref(), Some("2026-11-30 12:00:00"));
    assert_eq!(first.discovery_handler_id.as_deref(), Some(handler.as_str()));
    assert_eq!((first.props.as_deref(), first.namespace_id.as_deref()), (Some("{}"), None));

    let same = binding::load_of(&mut tx, Bound::Selector(&id)).await.unwrap();
    assert_eq!(same.as_ref(), Some(&binding));
    assert!(binding::load(&mut tx, "nope").await.unwrap().is_none());
    assert!(binding::load_of(&mut tx, Bound::ProxySelector(&id)).await.unwrap().is_none());
    let row = binding::find_of(&mut tx, Bound::Selector(&id)).await.unwrap().unwrap();
    assert_eq!(binding::find(&mut tx, &handler).await.unwrap(), Some(row.clone()));
    assert_eq!(row.discovery.discovery_type, "local");
    assert!(binding::find_of(&mut tx, Bound::ProxySelector("x")).await.unwrap().is_none());

    let rows = &test.sets(NS, 0).await[0].rows;
    assert_eq!((rows[0].group(), rows[0].event), (Some(Group::ProxySelector), Some(Event::Create)));
    assert_eq!(
        (rows[1].group(), rows[1].event, rows[1].object_id.as_str()),
        (Some(Group::DiscoverUpstream), Some(Event::Update), id.as_str())
    );
}

async fn upstreams_are_added_changed_replaced_and_deleted(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let handler = bind(&mut uow, &id, &["127.0.0.1:1"]).await;
    upstream::insert(&mut uow, &handler, &[new_upstream("127.0.0.1:2")]).await.unwrap();
    let rows = upstream::of_handler(&mut uow, &handler).await.unwrap();
    assert_eq!(rows.len(), 2);
    let wanted = NewUpstream {
        status: 1,
        weight: 10,
        protocol: None,
        props: Some(r#"{"warmup":"10"}"#.to_owned()),
        ..new_upstream("127.0.0.1:3")
    };
    assert_eq!(upstream::update(&mut uow, &rows[0].id, &wanted).await.unwrap(), 1);
    assert_eq!(upstream::update(&mut uow, "nope", &wanted).await.unwrap(), 0);
    let changed = upstream::find(&mut uow, &rows[0].id).await.unwrap().unwrap();
    assert_eq!(
        (changed.upstream_url.as_str(), changed.upstream_status, changed.weight),
        ("127.0.0.1:3", 1, 10)
    );
    assert_eq!(changed.protocol, None);
    assert_eq!(
        upstream::set_state(&mut uow, &rows[0].id, 0, upstream::Origin::Configured).await.unwrap(),
        1
    );
    assert_eq!(upstream::find_many(&mut uow, &[&*rows[0].id, "x"]).await.unwrap().len(), 1);
    assert_eq!(upstream::of_handlers(&mut uow, &[&*handler, "x"]).await.unwrap().len(), 2);
    assert_eq!(upstream::delete(&mut uow, &[&*rows[1].id, "x"]).await.unwrap(), 1);
    upstream::replace(&mut uow, &handler, &[new_upstream("127.0.0.1:3")]).await.unwrap();
    let replaced = upstream::of_handler(&mut uow, &handler).await.unwrap();
    assert_eq!(replaced.len(), 1);
    assert_ne!(replaced[0].id, rows[0].id, "a replacement has new ids");
    let early = NewUpstream { created_ms: Some(1000), ..new_upstream("127.0.0.1:4") };
    upstream::replace(&mut uow, &handler, &[early]).await.unwrap();
    let row = upstream::of_handler(&mut uow, &handler).await.unwrap().remove(0);
    assert_eq!((row.created_ms, row.updated_ms), (1000, 1000), "when it says it started");
    upstream::replace(&mut uow, &handler, &[]).await.unwrap();
    let before = binding::load_for_update(&mut uow, &handler).await.unwrap().unwrap();
    assert_eq!(before.upstreams.upstream_data_list, Some(Vec::new()), "empty, not absent");
    let props = Some("{\"a\":\"b\"}");
    assert_eq!(
        binding::update_handler(&mut uow, &handler, "{}", Some("/n"), props).await.unwrap(),
        1
    );
    let row = binding::find(&mut uow, &handler).await.unwrap().unwrap().handler;
    assert_eq!((row.handler.as_str(), row.listener_node.as_deref()), ("{}", Some("/n")));
    uow.commit().await.unwrap();

    let twice = [new_upstream("127.0.0.1:7"), new_upstream("127.0.0.1:7")];
    let mut uow = test.begin().await;
    let refused = upstream::replace(&mut uow, &handler, &twice).await.unwrap_err();
    assert!(refused.is_unique_violation(), "{refused}");
    drop(uow);
    let mut uow = test.begin().await;
    let refused = upstream::insert(&mut uow, "nope", &twice[..1]).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
}

async fn a_discovery_of_a_plugin_outlives_its_selectors(test: TestStore) {
    let mut uow = test.begin().await;
    let shared = discovery::insert(&mut uow, &local("1")).await.unwrap();
    let mut selectors = Vec::new();
    for n in 0..2 {
        let id = add_selector(&mut uow, &format!("s{n}")).await;
        let new = new_binding(UseDiscovery::Existing(shared.id.clone()), &["127.0.0.1:1"]);
        binding::insert(&mut uow, Bound::Selector(&id), &new).await.unwrap();
        selectors.push(id);
    }
    uow.commit().await.unwrap();

    let mut uow = test.begin().await;
    assert_eq!(discovery::handlers(&mut uow, &shared.id).await.unwrap(), 2);
    let found = discovery::find_by_level(&mut uow, NS, "divide", "1").await.unwrap();
    assert_eq!(found.as_ref(), Some(&shared));
    assert!(discovery::find_by_level(&mut uow, NS, "divide", "0").await.unwrap().is_none());
    longmen_db::repository::selector::delete(&mut uow, &selectors).await.unwrap();
    assert_eq!(discovery::find(&mut uow, &shared.id).await.unwrap(), Some(shared.clone()));
    let wanted = NewDiscovery { discovery_type: "etcd".to_owned(), ..local("1") };
    assert_eq!(discovery::update(&mut uow, &shared.id, &wanted).await.unwrap(), 1);
    assert_eq!(discovery::update(&mut uow, "nope", &wanted).await.unwrap(), 0);
    assert_eq!(discovery::delete(&mut uow, &shared.id).await.unwrap(), 1);
    uow.commit().await.unwrap();

    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "s").await;
    bind(&mut uow, &id, &[]).await;
    let used = binding::find_of(&mut uow, Bound::Selector(&id)).await.unwrap().unwrap();
    let refused = discovery::delete(&mut uow, &used.discovery.id).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
    drop(uow);
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "s").await;
    let lost = new_binding(UseDiscovery::Existing("nope".to_owned()), &[]);
    let refused = binding::insert(&mut uow, Bound::Selector(&id), &lost).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
}

async fn raw_ports_come_and_go_with_their_upstreams(test: TestStore) {
    let new = new_port();
    let mut uow = test.begin().await;
    let id = proxy_selector::insert(&mut uow, &new).await.unwrap();
    let binding = new_binding(UseDiscovery::New(local("0")), &["127.0.0.1:1"]);
    binding::insert(&mut uow, Bound::ProxySelector(&id), &binding).await.unwrap();
    uow.commit().await.unwrap();
    test.clock.forward(1);

    let mut uow = test.begin().await;
    let later = NewProxySelector { name: "redis".to_owned(), ..new.clone() };
    let second = proxy_selector::insert(&mut uow, &later).await.unwrap();
    let page = proxy_selector::page(&mut uow, NS, None, PageRequest::new(1, 12)).await.unwrap();
    let names: Vec<&str> = page.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["redis", "mysql"], "the last written first");
    let like = Like::contains("SQL");
    let page =
        proxy_selector::page(&mut uow, NS, like.as_ref(), PageRequest::new(1, 12)).await.unwrap();
    assert_eq!(page.total, 1);
    let wanted = NewProxySelector { forward_port: Some(9498), ..new };
    assert_eq!(proxy_selector::update(&mut uow, &id, &wanted).await.unwrap(), 1);
    let row = proxy_selector::find(&mut uow, &id).await.unwrap().unwrap();
    assert_eq!((row.forward_port, row.updated_ms - row.created_ms), (Some(9498), 1));

    let loaded = binding::load_of(&mut uow, Bound::ProxySelector(&id)).await.unwrap().unwrap();
    assert_eq!(loaded.announcement.forward_port, Some(9498));
    assert_eq!(loaded.announcement.proxy_type.as_deref(), Some("tcp"));
    assert_eq!(loaded.announcement.props.as_ref().unwrap()["loadBalance"], "random");
    assert_eq!(loaded.upstreams.selector_name.as_deref(), Some("mysql"));

    let gone = proxy_selector::delete(&mut uow, &[&*id, &*second, "nope"]).await.unwrap();
    assert_eq!(gone, [loaded]);
    gone[0].record_deleted(&mut uow);
    uow.commit().await.unwrap();
    let rows = &test.sets(NS, 0).await[0].rows;
    assert_eq!((rows[0].event, rows[1].event), (Some(Event::Delete), None));
    let left = test.mentions(&id).await;
    assert_eq!(left, [("config_change".to_owned(), 2)]);
}

async fn a_second_binding_of_a_selector_is_refused(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    bind(&mut uow, &id, &[]).await;
    let again = new_binding(UseDiscovery::New(local("0")), &[]);
    let refused = binding::insert(&mut uow, Bound::Selector(&id), &again).await.unwrap_err();
    assert!(refused.is_unique_violation(), "{refused}");
}
