//! Where we answer differently on purpose.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use crate::replay::Difference;

const SEED: &str = "golden/README: the recorded seed was that of H2";
const REFUSED: &str = "golden/README: refused at save";
const NAMESPACE: &str = "admin-api.md 6, 27";
const CONDITIONS: &str = "admin-api.md 6, 23";
const GAPS: &str = "golden/README: some calls are not among the recordings";

const fn on_purpose(
    seq: u32,
    place: &'static str,
    why: &'static str,
    ours: fn(Value) -> Value,
) -> Difference {
    Difference { seq, place, why, ours }
}

pub(crate) const ON_PURPOSE: &[Difference] = &[
    on_purpose(
        46,
        SEED,
        "dates of the start, and one plugin more: `aiResponseTransformer`",
        |mut body| {
            let rows = body["data"]["dataList"].as_array_mut().unwrap();
            rows.pop();
            for row in rows.iter_mut() {
                row["dateCreated"] = json!("<date>");
                row["dateUpdated"] = json!("<date>");
            }
            rows.push(json!({"note": "list cut here by the recorder; it had 46 rows"}));
            body
        },
    ),
    on_purpose(87, REFUSED, "an operator that no gateway knows", |_| {
        refusal(
            "condition 0: operator is \">\", expected one of match, =, regex, contains, startsWith, \
             endsWith, exclude, pathPattern, isBlank, TimeBefore or TimeAfter",
        )
    }),
    on_purpose(107, CONDITIONS, "an update of nothing leaves the conditions", both_conditions),
    on_purpose(115, CONDITIONS, "an update of nothing leaves the conditions", both_conditions),
    on_purpose(138, REFUSED, "a handle that no gateway could read", |_| {
        refusal(
            "handle: `not json` is no JSON text (expected ident at line 1 column 2); the plugin \
             divide expects an object such as {\"timeout\":3000}, or nothing",
        )
    }),
    on_purpose(140, REFUSED, "a condition without the value it compares with", |_| {
        refusal("condition 0: paramValue is missing, expected a text that is not blank")
    }),
    on_purpose(155, NAMESPACE, "metadata tells its namespace", |mut body| {
        body["data"]["dataList"][0]["namespaceId"] = json!(DEFAULT_NAMESPACE);
        body
    }),
    on_purpose(156, NAMESPACE, "metadata tells its namespace", |mut body| {
        body["data"]["namespaceId"] = json!(DEFAULT_NAMESPACE);
        body
    }),
    on_purpose(163, NAMESPACE, "metadata tells its namespace", |mut body| {
        body["data"]["shop"][0]["namespaceId"] = json!(DEFAULT_NAMESPACE);
        body
    }),
    on_purpose(223, SEED, "menus whose ids and icons H2's first start makes", |mut body| {
        body["data"] = json!("(cut by the recorder)");
        body
    }),
    on_purpose(234, SEED, "the choices have places of their own", |mut body| {
        let options = body["data"]["dataList"][1]["dictOptions"].as_array_mut().unwrap();
        for option in options {
            let sort = match option["dictName"].as_str().unwrap() {
                "leastActive" => 3,
                "p2c" => 4,
                "shortestResponse" => 5,
                _ => continue,
            };
            option["sort"] = json!(sort);
        }
        body
    }),
    on_purpose(
        237,
        "admin-api.md 6, 41",
        "the log has words and entries of its own",
        |mut body| {
            body["data"] = json!("(cut by the recorder)");
            body
        },
    ),
    on_purpose(
        254,
        GAPS,
        "here the plugin is linked nowhere any more",
        |_| json!({"code": 200, "message": "delete success", "data": null}),
    ),
];

fn refusal(message: &str) -> Value {
    json!({"code": 500, "message": message, "data": null})
}

/// The two conditions of the update before the one that matched nothing.
fn both_conditions(mut body: Value) -> Value {
    let condition = |id: &str, param_type: &str, operator: &str, name: &str, value: &str| {
        json!({
            "id": id, "selectorId": "<id4>", "paramType": param_type, "paramTypeName": param_type,
            "operator": operator, "operatorName": operator, "paramName": name,
            "paramValue": value, "dateCreated": "<date>", "dateUpdated": "<date>",
        })
    };
    body["data"]["selectorConditions"] = json!([
        condition("<id9001>", "uri", "startsWith", "/", "/orders/"),
        condition("<id9002>", "header", "=", "x-user", "a&b<c>"),
    ]);
    body
}
