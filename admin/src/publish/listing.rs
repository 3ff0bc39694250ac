//! The list of gateways, those of all admins, with the version in force on each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::Json;
use axum::response::{IntoResponse, Response};
use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_db::repository::namespace_plugin;
use serde::Serialize;

use super::gateways::{GatewayView, Kind};
use super::{missing, reports};
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{FromQuery, JavaType, Query, QueryArgs};

/// Answers with `{total, version, rows}`, the oldest connection first: those of one namespace, or all.
/// The version is that of the namespace, without one of the default namespace.
pub(super) async fn gateways(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Response> {
    let shared = &context.state().publisher().0;
    // Before the versions, so that none has a later one than there is.
    let own = shared.gateways.list();
    let mut enabled: HashMap<String, Vec<String>> = HashMap::new();
    let mut tx = context.read().await?;
    let epoch = longmen_db::epoch(&mut tx).await?;
    let mut versions: HashMap<String, u64> = HashMap::new();
    let mut views = reports::merged(own, reports::of_others(shared, &mut tx).await?);
    let asked = query.namespace_id.as_deref();
    views.retain(|view| asked.is_none_or(|asked| view.namespace == asked));
    for view in &mut views {
        let of_namespace = match enabled.entry(view.namespace.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let rows = namespace_plugin::of_namespace(&mut tx, &view.namespace).await?;
                let on = rows.into_iter().filter(|row| row.enabled).map(|row| row.name);
                new.insert(on.collect())
            }
        };
        missing::add_faults(context.state().plugins(), view, of_namespace);
    }
    let asked = asked.unwrap_or(DEFAULT_NAMESPACE).to_owned();
    for namespace in views.iter().map(|view| &view.namespace).chain([&asked]) {
        if !versions.contains_key(namespace) {
            let version = longmen_db::current_version(&mut tx, namespace).await?;
            versions.insert(namespace.clone(), version);
        }
    }
    drop(tx);
    let version = versions.get(&asked).copied().unwrap_or_default();
    let rows: Vec<Row> = views
        .into_iter()
        .map(|view| {
            let current = versions.get(&view.namespace).copied().unwrap_or_default();
            Row::new(view, &epoch, current)
        })
        .collect();
    Ok(Json(List { total: rows.len(), version, epoch, rows }).into_response())
}

/// Which gateways to list.
pub(super) struct ListQuery {
    namespace_id: Option<String>,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] =
        &[("namespaceId", JavaType::String, false)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { namespace_id: args.filled("namespaceId") })
    }
}

#[derive(Debug, Serialize)]
struct List {
    total: usize,
    /// The version of the namespace that is asked for.
    version: u64,
    /// In which it counts.
    epoch: String,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    view: GatewayView,
    /// How many versions it is behind; absent where it does not say or counts in another epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
    /// How it is, in a word.
    state: State,
}

/// How a gateway is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    /// It is not connected.
    Offline,
    /// It is connected and does not say what is in force, as stock gateways.
    Unknown,
    /// Something is not in force as it is configured; see the faults.
    Faulty,
    /// An older version is in force.
    Behind,
    /// The current version is in force.
    Current,
}

impl Row {
    fn new(view: GatewayView, epoch: &str, current: u64) -> Self {
        let comparable = view.epoch.as_deref() == Some(epoch);
        let version = view.version.filter(|_| comparable);
        let lag = version.map(|version| current.saturating_sub(version));
        let state = match lag {
            _ if !view.connected => State::Offline,
            None if view.kind == Kind::Stock => State::Unknown,
            Some(_) if !view.faults.is_empty() => State::Faulty,
            Some(0) => State::Current,
            Some(_) | None => State::Behind,
        };
        Self { view, lag, state }
    }
}
