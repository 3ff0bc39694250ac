//! Rows that the reference stored and ours refuses. They are written past the check, so that the
//! recordings after them still fit.

use longmen_core::model::{Condition, Rule, Selector};
use longmen_db::{
    Actor, UnitOfWork,
    repository::{NewCondition, rule, selector},
};
use serde_json::Value;

use crate::{golden::Recording, replay::Replay};

/// Stores what `recording` asked for, if it is one of the refused calls.
pub(crate) async fn store(replay: &mut Replay<'_>, recording: &Recording) {
    match recording.id.as_str() {
        "selector-uri-check-7" => {
            let sent = sent(replay, recording);
            let mut uow = begin(replay).await;
            let id = uow.next_id().unwrap();
            let stored = Selector { id: id.clone(), ..selector_of(&sent) };
            let conditions = conditions(&sent["selectorConditions"]);
            selector::insert(&mut uow, &stored, &conditions).await.unwrap();
            uow.commit().await.unwrap();
            let placeholder = recording.body.as_ref().and_then(|body| body["data"].as_str());
            replay.bindings.bind(placeholder.unwrap(), &id);
        }
        "rule-create-bad-handle" | "rule-create-header-no-value" => {
            let sent = sent(replay, recording);
            let mut uow = begin(replay).await;
            let stored = Rule { id: uow.next_id().unwrap(), ..rule_of(&sent) };
            let conditions = conditions(&sent["ruleConditions"]);
            rule::insert(&mut uow, &stored, &conditions).await.unwrap();
            uow.commit().await.unwrap();
        }
        _ => {}
    }
}

fn sent(replay: &Replay<'_>, recording: &Recording) -> Value {
    let body = recording.request.body.as_deref().unwrap();
    serde_json::from_str(&replay.bindings.fill(body).unwrap()).unwrap()
}

async fn begin(replay: &Replay<'_>) -> UnitOfWork {
    replay.admin.running().state().store().begin(Actor::system()).await.unwrap()
}

/// What was sent, as gateways would know it: of the members only the spelling of two differs.
fn selector_of(sent: &Value) -> Selector {
    let mut wire = sent.clone();
    wire["logged"] = sent["loged"].clone();
    serde_json::from_value(wire).unwrap()
}

fn rule_of(sent: &Value) -> Rule {
    serde_json::from_value(sent.clone()).unwrap()
}

fn conditions(sent: &Value) -> Vec<NewCondition> {
    let conditions: Vec<Condition> = serde_json::from_value(sent.clone()).unwrap();
    conditions.into_iter().map(|condition| NewCondition { id: None, condition }).collect()
}
