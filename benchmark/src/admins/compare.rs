//! What the clients were told, the rows, the history and the gateway, side by side.

use std::collections::{BTreeMap, HashMap};

use http::StatusCode;
use serde_json::{Value, json};

use super::editors::Edited;
use super::{Run, Scene, path};
use crate::client::{Answer, Connection, Server};

/// Faults of one kind that are told.
const MOST: usize = 20;

/// Earlier edits of a rule that must not be in force any more.
const EARLIER: u64 = 2;

/// One answer of a server.
pub(super) async fn get(server: &Server, target: &str) -> anyhow::Result<Answer> {
    Connection::new(server.clone()).get(target).await
}

impl Scene {
    /// Notes in `run` whatever does not agree.
    pub(super) async fn compare(
        &self,
        run: &mut Run,
        selector: &str,
        edited: &Edited,
    ) -> anyhow::Result<()> {
        let stored: BTreeMap<String, Value> =
            self.database.stored()?.into_iter().map(|row| (key(&row), row)).collect();
        let history = self.database.history()?;
        let mut faults = differences("history", &stored, &replayed(&history));
        let (versions, newest) = self.database.versions()?;
        if versions != newest {
            faults.push(format!("the history has {versions} versions up to {newest}"));
        }
        faults.extend(Self::exactly_once(run, &history, edited));
        faults.extend(self.told(&stored, edited));
        faults.extend(self.in_force(selector, &stored, edited).await?);
        faults.extend(self.reported(run).await?);
        run.rules = stored.values().filter(|row| row["kind"] == "RULE").count() as u64;
        run.faults.extend(faults);
        Ok(())
    }

    /// Each acknowledged edit is one change of the history.
    fn exactly_once(run: &mut Run, history: &[Value], edited: &Edited) -> Vec<String> {
        let mut made: HashMap<&str, (u64, u64)> = HashMap::new();
        for row in history.iter().filter(|row| row["kind"] == "RULE") {
            let at = |object: &'static str| conditions(&row[object])[0]["paramValue"].as_str();
            let Some(after) = at("after") else { continue };
            let (first, again) = made.entry(after).or_default();
            *(if at("before") == Some(after) { again } else { first }) += 1;
        }
        let mut faults = Vec::new();
        for (n, number) in &edited.acknowledged {
            let (first, again) = made.get(&*path(*n, *number)).copied().unwrap_or_default();
            run.repeated += again;
            if first != 1 {
                faults.push(format!("edit {number} of rule {n} is in the history {first} times"));
            }
        }
        shortened(faults)
    }

    /// The rows are what the clients did last.
    fn told(&self, stored: &BTreeMap<String, Value>, edited: &Edited) -> Vec<String> {
        let mut faults = Vec::new();
        for (n, (id, number)) in self.ids.iter().zip(&edited.numbers).enumerate() {
            let wanted = path(u32::try_from(n).unwrap_or(u32::MAX), *number);
            let row = stored.get(&format!("RULE {id}")).unwrap_or(&Value::Null);
            if row["conditions"][0][2] != wanted.as_str() {
                faults.push(format!("rule {n} is {row}, expected {wanted}"));
            }
        }
        shortened(faults)
    }

    /// The gateway serves the path of each row, and none that it had before.
    async fn in_force(
        &self,
        selector: &str,
        stored: &BTreeMap<String, Value>,
        edited: &Edited,
    ) -> anyhow::Result<Vec<String>> {
        let mut connection = Connection::new(self.gateway.clone());
        let upstream = self.origin.addr().to_string();
        let mut faults = Vec::new();
        for (n, id) in self.ids.iter().enumerate() {
            let row = stored.get(&format!("RULE {id}")).unwrap_or(&Value::Null);
            let Some(now) = row["conditions"][0][2].as_str() else { continue };
            let answer = connection.get(now).await?;
            if answer.status != StatusCode::OK {
                faults.push(format!(
                    "{now} of selector {selector} is answered {}, expected 200 of {upstream}",
                    answer.status
                ));
            }
            let number = edited.numbers[n];
            for earlier in number.saturating_sub(EARLIER)..number {
                let old = path(u32::try_from(n).unwrap_or(u32::MAX), earlier);
                let answer = connection.get(&old).await?;
                if answer.status == StatusCode::OK {
                    faults.push(format!("{old} is still served, though the rule is at {now}"));
                }
            }
        }
        Ok(shortened(faults))
    }

    /// Each admin says that the gateway has the version, wherever it is connected.
    async fn reported(&self, run: &Run) -> anyhow::Result<Vec<String>> {
        let wanted = json!(format!("the gateway is on version {}", run.version));
        let mut faults = Vec::new();
        for server in self.servers()? {
            let mut told = Value::Null;
            let begun = std::time::Instant::now();
            while told != wanted && begun.elapsed() < super::SETTLE {
                let mut api = self.api.at(server.clone());
                told = api.get("/v1/gateways").await?["namespaces"][0]["summary"].clone();
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            if told != wanted {
                faults.push(format!("{} says {told}, expected {wanted}", server.authority()));
            }
        }
        Ok(faults)
    }
}

fn key(row: &Value) -> String {
    let text = |member: &str| row[member].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("kind"), text("id"))
}

/// The conditions of an object: their member has another name on rules than on selectors.
fn conditions(object: &Value) -> &Value {
    let member =
        if object["conditionDataList"].is_array() { "conditionDataList" } else { "conditionList" };
    &object[member]
}

/// What the history makes of nothing, in the words of the rows.
fn replayed(history: &[Value]) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for row in history {
        let after = &row["after"];
        if after.is_null() {
            objects.remove(&key(row));
            continue;
        }
        let conditions: Vec<Value> = conditions(after)
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|one| json!([one["paramType"], one["operator"], one["paramValue"]]))
            .collect();
        let mut object = json!({
            "kind": row["kind"], "id": after["id"], "name": after["name"], "sort": after["sort"],
            "enabled": after["enabled"], "matchMode": after["matchMode"], "handle": after["handle"],
            "conditions": conditions,
        });
        if row["kind"] == "RULE" {
            object["selectorId"] = after["selectorId"].clone();
        }
        objects.insert(key(row), object);
    }
    objects
}

fn differences(
    what: &str,
    stored: &BTreeMap<String, Value>,
    other: &BTreeMap<String, Value>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for key in stored.keys().chain(other.keys().filter(|key| !stored.contains_key(*key))) {
        let (row, other) = (stored.get(key), other.get(key));
        if row != other {
            faults.push(format!("{key}: the row is {row:?}, by the {what} {other:?}"));
        }
    }
    shortened(faults)
}

fn shortened(mut faults: Vec<String>) -> Vec<String> {
    let more = faults.len().saturating_sub(MOST);
    faults.truncate(MOST);
    if more > 0 {
        faults.push(format!("and {more} more of this kind"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(version: u64, id: &str, after: Value) -> Value {
        json!({"version": version, "kind": "RULE", "id": id, "after": after})
    }

    fn after(id: &str, path: &str) -> Value {
        json!({"id": id, "name": "r", "sort": 1, "enabled": true, "matchMode": 0, "handle": "{}",
            "selectorId": "s", "conditionDataList":
            [{"paramType": "uri", "operator": "=", "paramName": "/", "paramValue": path}]})
    }

    #[test]
    fn a_history_is_replayed_and_differences_are_found() {
        let history = [
            change(1, "1", after("1", "/a")),
            change(2, "2", after("2", "/b")),
            change(3, "1", Value::Null),
        ];
        let objects = replayed(&history);
        assert_eq!(objects.keys().collect::<Vec<_>>(), ["RULE 2"]);
        assert_eq!(objects["RULE 2"]["conditions"], json!([["uri", "=", "/b"]]));
        assert!(differences("history", &objects, &objects).is_empty());
        let mut stored = objects.clone();
        stored.get_mut("RULE 2").unwrap()["name"] = "another".into();
        assert_eq!(differences("history", &stored, &objects).len(), 1);
        assert_eq!(differences("history", &BTreeMap::new(), &objects).len(), 1, "a lost row");
    }
}
