//! Plugins of namespaces, the catalogue, form fields, namespaces: what is stored, what gateways are
//! told, and what the operation log says.

use longmen_core::model::{DEFAULT_NAMESPACE, Selector};
use longmen_core::sync::Event;
use longmen_db::repository::{conditioned, namespace_plugin, selector};
use longmen_db::{ChangeRow, Operation};
use serde_json::{Value, json};

use crate::scene::{Scene, on_both_stores, selector, with};

/// Links of `sign` and `divide` to the default namespace.
const SIGN: &str = "1801816010882822145";
const DIVIDE: &str = "1801816010882822183";

on_both_stores!(
    a_switch_is_told_to_gateways,
    settings_are_told_to_gateways_and_checked,
    a_link_is_told_to_our_gateways_alone,
    a_plugin_goes_with_its_selectors,
    syncs_are_told_as_refreshes,
    the_catalogue_is_written_with_its_menu,
    our_gateways_hear_of_the_catalogue_what_they_get_of_it,
    what_a_plugin_is_referred_to_by_is_told,
    form_fields_are_written,
    namespaces_are_written,
    writes_are_logged,
);

/// Kind, id, operation and event of each row.
fn told(rows: &[ChangeRow]) -> Vec<(&str, &str, Operation, Option<Event>)> {
    rows.iter()
        .map(|row| (row.kind.as_str(), row.object_id.as_str(), row.operation, row.event))
        .collect()
}

fn json(text: &Option<String>) -> Value {
    serde_json::from_str(text.as_deref().unwrap()).unwrap()
}

async fn a_switch_is_told_to_gateways(scene: &Scene) {
    let version = scene.version().await;
    let body = json!({"ids": [SIGN, DIVIDE], "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    scene.ok("POST", "/namespace-plugin/enabled", body).await;
    let rows = scene.changes_after(version).await;
    let update = |id| ("PLUGIN", id, Operation::Update, Some(Event::Update));
    assert_eq!(told(&rows), [update("1"), update("5")]);
    assert_eq!(json(&rows[0].before)["enabled"], false);
    assert_eq!(json(&rows[0].after)["enabled"], true);
    assert_eq!((rows[0].actor.as_str(), rows[0].source.as_str()), ("admin", "api"));
    assert_eq!(rows[0].address, "127.0.0.1");
    assert_eq!(scene.version().await, version + 1, "both are one change set");

    // By the plugins' own ids; one that is not linked is passed over.
    let version = scene.version().await;
    let path = "/namespace-plugin/enabledByNamespace";
    let body = json!({"ids": ["1", "nope"], "enabled": false, "namespaceId": DEFAULT_NAMESPACE});
    scene.ok("POST", path, body).await;
    assert_eq!(told(&scene.changes_after(version).await), [update("1")]);
    let nothing = json!({"ids": ["nope"], "enabled": false, "namespaceId": DEFAULT_NAMESPACE});
    scene.ok("POST", path, nothing.clone()).await;
    assert_eq!(
        scene.refused("POST", "/namespace-plugin/enabled", nothing).await,
        "The plugin(s) does not exist！"
    );
}

async fn settings_are_told_to_gateways_and_checked(scene: &Scene) {
    let path = format!("/namespace-plugin/{DIVIDE}");
    let settings = |config: &str| {
        json!({"pluginId": "5", "name": "divide", "config": config, "sort": 207,
               "enabled": true, "namespaceId": DEFAULT_NAMESPACE})
    };
    let version = scene.version().await;
    scene.ok("PUT", &path, settings("{\"multiSelectorHandle\":\"1\"}")).await;
    let rows = scene.changes_after(version).await;
    assert_eq!(told(&rows), [("PLUGIN", "5", Operation::Update, Some(Event::Update))]);
    let after = json(&rows[0].after);
    assert_eq!(after["sort"], 207);
    assert_eq!(after["config"], "{\"multiSelectorHandle\":\"1\"}");
    assert_eq!(after.get("pluginJar"), None, "the log is without jars");
    let text = scene.refused("PUT", &path, settings("{not json")).await;
    assert!(text.starts_with("config: `{not json` is no JSON text"), "{text}");
    // The catalogue keeps its own.
    let template = scene.get("/plugin-template/5").await;
    assert_eq!(template["sort"], 200);
}

async fn a_link_is_told_to_our_gateways_alone(scene: &Scene) {
    let other = scene.other_namespace().await;
    let path = format!("/namespace-plugin/{other}/5");
    let linked = scene.ok("POST", &path, Value::Null).await;
    assert_eq!((&linked["id"], &linked["pluginRelId"]), (&Value::Null, &Value::Null));
    assert_eq!(
        scene.refused("POST", &path, Value::Null).await,
        "The plugin of namespace is exist！"
    );
    let mut tx = scene.store().read().await.unwrap();
    let sets = longmen_db::since(&mut tx, &other, 0, 100).await.unwrap();
    let longmen_db::Since::Sets(sets) = sets else { panic!("{sets:?}") };
    let rows: Vec<ChangeRow> = sets.into_iter().flat_map(|set| set.rows).collect();
    drop(tx);
    assert_eq!(told(&rows)[1..], [("PLUGIN", "5", Operation::Create, None)]);

    let list = format!("/namespace-plugin?namespaceId={other}&currentPage=1&pageSize=50");
    assert_eq!(scene.get(&list).await["dataList"].as_array().unwrap().len(), 1);
    let unknown = "/namespace-plugin?namespaceId=nope&currentPage=1&pageSize=50";
    assert_eq!(
        scene.refused("GET", unknown, Value::Null).await,
        "queryPlugins.namespaceId: namespace is not existed"
    );
    let templates =
        scene.get(&format!("/namespace-plugin/listByNamespace?namespace={other}")).await;
    assert_eq!(templates.as_array().unwrap().len(), 1);
    let data = scene.get(&format!("/namespace-plugin/all/{other}")).await;
    assert_eq!(data[0]["namespaceId"], other);
}

async fn a_plugin_goes_with_its_selectors(scene: &Scene) {
    let selector = scene.selector("shop").await;
    let rule = scene.rule(&selector, "items").await;
    let other = scene.other_namespace().await;
    let delete = |namespace: &str| json!({"ids": [DIVIDE], "namespaceId": namespace});
    assert_eq!(
        scene.refused("DELETE", "/namespace-plugin/batch", delete(&other)).await,
        "The plugin(s) does not exist！"
    );
    let version = scene.version().await;
    scene.ok("DELETE", "/namespace-plugin/batch", delete(DEFAULT_NAMESPACE)).await;
    let rows = scene.changes_after(version).await;
    let gone = |kind, id| (kind, id, Operation::Delete, Some(Event::Delete));
    assert_eq!(
        told(&rows),
        [gone("PLUGIN", "5"), gone("RULE", &rule), gone("SELECTOR", &selector)]
    );
    assert_eq!(json(&rows[0].before)["name"], "divide");
    assert_eq!(
        scene.refused("GET", &format!("/selector/{selector}"), Value::Null).await,
        "detailSelector.id: selector is not existed"
    );
    let list = format!(
        "/namespace-plugin?namespaceId={DEFAULT_NAMESPACE}&name=divide&currentPage=1&pageSize=50"
    );
    assert_eq!(scene.get(&list).await["dataList"], json!([]));
}

async fn syncs_are_told_as_refreshes(scene: &Scene) {
    let version = scene.version().await;
    let path = "/namespace-plugin/syncPluginAll";
    let all = scene.call("POST", path, json!({"namespaceId": DEFAULT_NAMESPACE})).await;
    assert_eq!(all["message"], "sync success");
    let one = format!("/namespace-plugin/syncPluginData?id={DIVIDE}");
    let one = scene.call("PUT", &one, Value::Null).await;
    assert_eq!(one["message"], "sync success");
    let rows = scene.changes_after(version).await;
    let refresh = |kind, id| (kind, id, Operation::Refresh, Some(Event::Refresh));
    assert_eq!(told(&rows), [refresh("NAMESPACE", DEFAULT_NAMESPACE), refresh("PLUGIN", "5")]);
    let unknown = scene.call("POST", path, json!({"namespaceId": "nope"})).await;
    assert_eq!((&unknown["code"], &unknown["message"]), (&json!(500), &json!("sync fail")));
    assert_eq!(
        scene.refused("PUT", "/namespace-plugin/syncPluginData", Value::Null).await,
        "id parameter is missing"
    );
}

async fn the_catalogue_is_written_with_its_menu(scene: &Scene) {
    let form = "name=mine&role=HttpProcess&sort=77&enabled=true&config=%7B%7D";
    let version = scene.version().await;
    scene.ok("POST", &format!("/plugin-template?{form}"), Value::Null).await;
    let found = scene.get("/plugin-template?name=mine&currentPage=1&pageSize=12").await;
    let id = found["dataList"][0]["id"].as_str().unwrap().to_owned();
    let granted = scene.get("/permission/getUserPermissionByNamespace").await;
    let perms: Vec<&str> = granted["currentAuth"]
        .as_array()
        .unwrap()
        .iter()
        .map(|button| button["perms"].as_str().unwrap())
        .filter(|perms| perms.starts_with("plugin:mine"))
        .collect();
    assert_eq!(perms.len(), 9, "{perms:?}");
    let again = format!("/plugin-template/createPluginResource/{id}");
    let body = json!({"name": "mine", "role": "HttpProcess", "sort": 1, "enabled": true});
    assert_eq!(
        scene.refused("PUT", &again, body).await,
        "The resource name already exists and can't be added repeatedly!"
    );
    let bad_jar = format!("/plugin-template/{id}?{form}&file=AAAA");
    assert_eq!(
        scene.refused("PUT", &bad_jar, Value::Null).await,
        "The plugin JAR file is not correct or exceeds 16MB!"
    );
    scene.ok("DELETE", "/plugin-template/batch", json!([id])).await;
    let granted = scene.get("/permission/getUserPermissionByNamespace").await;
    assert!(!granted.to_string().contains("plugin:mine"), "the menu is left");
    assert_eq!(
        scene.refused("DELETE", "/plugin-template/batch", json!(["5"])).await,
        "The plugin that exists under a certain namespace cannot be deleted."
    );
    assert_eq!(scene.version().await, version, "gateways know nothing of the catalogue");
}

/// Name, role and jar of a namespace's plugin are the catalogue's. A full refresh shows them, so
/// the version must tell that they changed.
async fn our_gateways_hear_of_the_catalogue_what_they_get_of_it(scene: &Scene) {
    let other = scene.other_namespace().await;
    scene.ok("POST", &format!("/namespace-plugin/{other}/5"), Value::Null).await;
    let put = async |form: &str| {
        let version = scene.version().await;
        let of_other = scene.version_of(&other).await;
        scene.ok("PUT", &format!("/plugin-template/5?{form}"), Value::Null).await;
        let rows = scene.changes_after(version).await;
        assert_eq!(told(&scene.changes_of(&other, of_other).await), told(&rows), "{form}");
        rows
    };
    // Settings are each namespace's own.
    let rows = put("name=divide&role=Proxy&sort=1&enabled=false&config=%7B%7D").await;
    assert_eq!(told(&rows), []);

    let rows = put("name=divide&role=Authentication&sort=1&enabled=false").await;
    assert_eq!(told(&rows), [("PLUGIN", "5", Operation::Update, None)]);
    let (before, after) = (json(&rows[0].before), json(&rows[0].after));
    assert_eq!((&before["role"], &after["role"]), (&json!("Proxy"), &json!("Authentication")));
    assert_eq!((&after["enabled"], &after["sort"]), (&json!(true), &json!(200)), "the link's");

    let jar = put("name=divide&role=Authentication&sort=1&enabled=false&file=UEsDBA%3D%3D").await;
    assert_eq!(told(&jar), [("PLUGIN", "5", Operation::Update, None)]);
    assert_eq!(json(&jar[0].after).get("pluginJar"), None, "it may be megabytes");

    // Selectors and rules name their plugin, too.
    let rows = put("name=renamed&role=Authentication&sort=1&enabled=false").await;
    assert_eq!(told(&rows), [("PLUGIN", "5", Operation::Refresh, None)]);
}

async fn what_a_plugin_is_referred_to_by_is_told(scene: &Scene) {
    let other = scene.other_namespace().await;
    let form = "name=mine&role=HttpProcess&sort=77&enabled=true";
    scene.ok("POST", &format!("/plugin-template?{form}"), Value::Null).await;
    let found = scene.get("/plugin-template?name=mine&currentPage=1&pageSize=12").await;
    let id = found["dataList"][0]["id"].as_str().unwrap().to_owned();
    let of_mine = with(selector("x"), json!({"pluginId": id, "namespaceId": other}));
    assert_eq!(
        scene.refused("POST", "/selector", of_mine.clone()).await,
        format!(
            "pluginId: {id} (mine) is not linked to the namespace {other}, expected one of its \
             plugins"
        )
    );
    scene.ok("POST", &format!("/namespace-plugin/{other}/{id}"), Value::Null).await;
    let made = scene.ok("POST", "/selector", of_mine).await;

    // Left behind by whoever wrote past the API.
    let mut uow = scene.store().begin(longmen_db::Actor::system()).await.unwrap();
    let link = namespace_plugin::find_by_plugin(&mut uow, &other, &id).await.unwrap().unwrap();
    let id_of_selector = made.as_str().unwrap();
    let stored = conditioned::find::<Selector>(&mut uow, id_of_selector).await.unwrap().unwrap();
    namespace_plugin::delete(&mut uow, &[&link.id]).await.unwrap();
    selector::insert(&mut uow, &stored.object, &[]).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(
        scene.refused("DELETE", "/plugin-template/batch", json!([id])).await,
        "The plugin that exists under a certain namespace cannot be deleted."
    );
}

async fn form_fields_are_written(scene: &Scene) {
    let field = |label: &str| {
        json!({"pluginId": "5", "field": "mine", "label": label, "dataType": 3, "type": 2,
               "sort": "9", "extObj": "{}"})
    };
    assert_eq!(scene.ok("POST", "/plugin-handle", field("one")).await, 1);
    assert_eq!(
        scene.refused("POST", "/plugin-handle", field("one")).await,
        "unique index conflict, please enter again"
    );
    let found = scene.get("/plugin-handle?field=mine&currentPage=1&pageSize=12").await;
    assert_eq!(found["page"]["totalCount"], 1);
    let id = found["dataList"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(found["dataList"][0]["dictOptions"], json!([]), "a choice without choices");
    let path = format!("/plugin-handle/{id}");
    assert_eq!(scene.ok("PUT", &path, field("two")).await, 1);
    let of_none = with(field("two"), json!({"pluginId": "nope"}));
    for (method, path) in [("POST", "/plugin-handle"), ("PUT", path.as_str())] {
        assert_eq!(
            scene.refused(method, path, of_none.clone()).await,
            "pluginId: nope is no plugin, expected the id of a plugin of the catalogue"
        );
    }
    assert_eq!(scene.get(&path).await["label"], "two");
    let all = scene.get("/plugin-handle/all/5/2").await;
    assert!(all.as_array().unwrap().iter().any(|field| field["id"] == *id));
    assert_eq!(scene.ok("DELETE", "/plugin-handle/batch", json!([id, "nope"])).await, 1);
    assert_eq!(scene.refused("GET", &path, Value::Null).await, "detailRule.id: rule not exited");
}

async fn namespaces_are_written(scene: &Scene) {
    let other = scene.other_namespace().await;
    scene.ok("POST", &format!("/namespace-plugin/{other}/5"), Value::Null).await;
    let row = scene.get(&format!("/namespace/{other}")).await;
    let id = row["id"].as_str().unwrap().to_owned();
    let delete = async || scene.refused("DELETE", "/namespace/batch", json!([id])).await;
    assert_eq!(delete().await, "Plugins exist under those namespace!");
    let list = format!("/namespace-plugin?namespaceId={other}&currentPage=1&pageSize=50");
    let link = scene.get(&list).await["dataList"][0]["id"].clone();
    let body = json!({"ids": [link], "namespaceId": other});
    scene.ok("DELETE", "/namespace-plugin/batch", body).await;
    assert_eq!(scene.ok("DELETE", "/namespace/batch", json!([id])).await, "delete success");
    assert_eq!(delete().await, "The namespace(s) does not exist！");

    let body = json!({"id": "x", "namespaceId": null, "name": "a", "description": "b"});
    let path = "/namespace/insertOrUpdate";
    assert_eq!(scene.refused("POST", path, body).await, "namespace is not exist");
    let body = json!({"id": "x", "namespaceId": "nope", "name": "a", "description": "b"});
    assert_eq!(scene.ok("POST", path, body).await, Value::Null);
    let long = json!({"namespaceId": "x".repeat(129), "name": "a", "description": "b"});
    assert_eq!(
        scene.refused("POST", path, long).await,
        "namespaceId has 129 bytes, expected at most 128"
    );
    // Who made a namespace works in it; others do not see it.
    let (_, lina) = scene.user("lina", &["system:namespace:add", "system:namespace:list"]).await;
    let body = json!({"name": "hers", "description": ""});
    assert_eq!(scene.call_as(&lina, "POST", path, body).await["code"], 200);
    let mine = scene.call_as(&lina, "GET", "/namespace/list", Value::Null).await;
    let names: Vec<&str> =
        mine["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "hers"]);
}

async fn writes_are_logged(scene: &Scene) {
    let body = json!({"ids": [SIGN], "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    scene.ok("POST", "/namespace-plugin/enabled", body).await;
    scene.other_namespace().await;
    let log = scene.get("/operation-record/log/list").await;
    let newest = |index: usize, member: &str| log[index][member].as_str().unwrap().to_owned();
    assert_eq!(newest(0, "operationType"), "CREATE:Namespace");
    assert_eq!(newest(0, "context"), "the namespace [other] is create");
    assert_eq!(newest(0, "color"), "green");
    assert_eq!(newest(1, "operationType"), "UPDATE:Plugin");
    assert_eq!(newest(1, "operator"), "admin");
    assert!(newest(1, "context").contains("[sign]"), "{log}");
    let time = newest(0, "operationTime");
    assert_eq!((time.len(), &time[2..3], &time[5..6]), (14, "-", " "), "{time}");
    // Others see only what they did themselves.
    let (_, lina) = scene.user("lina", &[]).await;
    let own = scene.call_as(&lina, "GET", "/operation-record/log/list", Value::Null).await;
    assert_eq!(own["data"], json!([]));
}
