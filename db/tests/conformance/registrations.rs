//! What services register: who an upstream is from, and descriptions for people.

use longmen_db::repository::api_doc::{self, ApiDoc};
use longmen_db::repository::binding::{self, Bound, NewBinding, UseDiscovery};
use longmen_db::repository::discovery::NewDiscovery;
use longmen_db::repository::selector;
use longmen_db::repository::upstream::{self, NewUpstream, Origin};
use longmen_db::{Like, UnitOfWork};

use crate::support::{NS, TestStore, add_selector, new_upstream, on_both_stores};

on_both_stores!(
    an_upstream_is_its_instance_s_until_a_person_changes_it,
    descriptions_are_registered_once_and_go_offline_with_the_last_instance,
);

fn registered(url: &str) -> NewUpstream {
    NewUpstream { origin: Origin::Registered, ..new_upstream(url) }
}

async fn bind(uow: &mut UnitOfWork, selector_id: &str, upstreams: Vec<NewUpstream>) -> String {
    let new = NewBinding {
        discovery: UseDiscovery::New(NewDiscovery {
            discovery_name: "local".to_owned(),
            discovery_level: "0".to_owned(),
            plugin_name: "divide".to_owned(),
            namespace_id: NS.to_owned(),
            discovery_type: "local".to_owned(),
            server_list: String::new(),
            props: None,
        }),
        plugin_name: "divide".to_owned(),
        handler: String::new(),
        listener_node: None,
        props: None,
        upstreams,
    };
    binding::insert(uow, Bound::Selector(selector_id), &new).await.unwrap().handler.id
}

async fn origins(uow: &mut UnitOfWork, handler_id: &str) -> Vec<Origin> {
    let rows = upstream::of_handler(uow, handler_id).await.unwrap();
    rows.into_iter().map(|row| row.origin).collect()
}

async fn an_upstream_is_its_instance_s_until_a_person_changes_it(test: TestStore) {
    use Origin::{Away, Configured, Registered};
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let urls = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
    let handler = bind(&mut uow, &id, urls.map(registered).to_vec()).await;
    assert_eq!(origins(&mut uow, &handler).await, [Registered; 3]);

    // A console saves the whole list; only the second differs.
    let heavier = NewUpstream { weight: 99, ..new_upstream(urls[1]) };
    let list = [new_upstream(urls[0]), heavier, new_upstream(urls[2]), new_upstream("127.0.0.1:4")];
    upstream::replace(&mut uow, &handler, &list).await.unwrap();
    assert_eq!(origins(&mut uow, &handler).await, [Registered, Configured, Registered, Configured]);
    let rows = upstream::of_handler(&mut uow, &handler).await.unwrap();
    upstream::update(&mut uow, &rows[0].id, &new_upstream(urls[0])).await.unwrap();
    let drained = NewUpstream { status: 1, ..new_upstream(urls[2]) };
    upstream::update(&mut uow, &rows[2].id, &drained).await.unwrap();
    upstream::set_state(&mut uow, &rows[1].id, 1, Away).await.unwrap();
    assert_eq!(origins(&mut uow, &handler).await, [Registered, Away, Configured, Configured]);

    let following = upstream::following(&mut uow, "", 10).await.unwrap();
    assert_eq!(following.iter().map(|row| &row.id).collect::<Vec<_>>(), [&rows[0].id, &rows[1].id]);
    let next = upstream::following(&mut uow, &rows[0].id, 1).await.unwrap();
    assert_eq!((next.len(), &next[0].id), (1, &rows[1].id));

    upstream::set_protocol(&mut uow, &rows[0].id, None).await.unwrap();
    let found =
        upstream::find_of_selector(&mut uow, NS, "divide", "orders", urls[0]).await.unwrap();
    assert_eq!(found.map(|row| (row.id, row.protocol)), Some((rows[0].id.clone(), None)));
    let found = upstream::find_by_url(&mut uow, &handler, urls[1]).await.unwrap();
    assert_eq!(found.map(|row| row.id), Some(rows[1].id.clone()));
    for (namespace, plugin, name) in
        [("x", "divide", "orders"), (NS, "grpc", "orders"), (NS, "divide", "x")]
    {
        let none = upstream::find_of_selector(&mut uow, namespace, plugin, name, urls[0]).await;
        assert_eq!(none.unwrap(), None);
    }
    let plugin_id = selector::find_named(&mut uow, NS, "5", "orders").await.unwrap();
    assert_eq!(plugin_id.map(|row| row.object.id), Some(id));
    assert_eq!(selector::find_named(&mut uow, NS, "5", "Orders").await.unwrap(), None);
}

fn doc(path: &str, desc: &str) -> ApiDoc {
    ApiDoc {
        context_path: "orders".to_owned(),
        api_path: path.to_owned(),
        rpc_type: "http".to_owned(),
        api_desc: desc.to_owned(),
        api_source: 1,
        ..ApiDoc::default()
    }
}

async fn descriptions_are_registered_once_and_go_offline_with_the_last_instance(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let handler = bind(&mut uow, &id, vec![registered("127.0.0.1:1")]).await;
    let tags = ["a".to_owned(), "b".to_owned()];
    for text in ["one", "two"] {
        api_doc::register(&mut uow, &doc("/orders/a", text), &tags).await.unwrap();
    }
    let by_hand = ApiDoc { api_source: 2, ..doc("/orders/b", "by hand") };
    api_doc::register(&mut uow, &by_hand, &tags[..1]).await.unwrap();
    api_doc::register(&mut uow, &doc("/orders/b", "by the service"), &[]).await.unwrap();
    let rows = api_doc::list(&mut uow, None, None, None).await.unwrap();
    let said: Vec<_> = rows.iter().map(|row| (row.doc.api_desc.as_str(), row.doc.state)).collect();
    assert_eq!(said, [("two", 0), ("by hand", 0)]);
    assert_eq!(api_doc::tags(&mut uow, &rows[0].id).await.unwrap(), tags);
    let like = Like::contains("RS/B");
    assert_eq!(api_doc::list(&mut uow, like.as_ref(), Some(0), None).await.unwrap().len(), 1);
    assert_eq!(api_doc::list(&mut uow, None, Some(2), Some("nope")).await.unwrap(), []);

    assert_eq!(api_doc::go_offline(&mut uow, "orders").await.unwrap(), 0, "one is up");
    upstream::replace(&mut uow, &handler, &[]).await.unwrap();
    assert_eq!(api_doc::go_offline(&mut uow, "orders").await.unwrap(), 1);
    let row = api_doc::find(&mut uow, &rows[0].id).await.unwrap().unwrap();
    assert_eq!(row.doc.state, 2);
    api_doc::register(&mut uow, &doc("/orders/a", "three"), &tags).await.unwrap();
    let row = api_doc::find(&mut uow, &rows[0].id).await.unwrap().unwrap();
    assert_eq!((row.doc.state, row.doc.api_desc.as_str()), (0, "three"));
    let by_hand = api_doc::find(&mut uow, &rows[1].id).await.unwrap().unwrap();
    assert_eq!(by_hand.doc.state, 0, "a person's stays");
}
