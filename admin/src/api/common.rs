//! What the resources share.

use std::collections::HashSet;

use longmen_db::{Tx, repository};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{RequestBody, Violations, lenient};
use crate::permission::SUPER_USER;
use crate::state::AppState;

/// The most bytes of a text that rows are found by: a PostgreSQL index takes entries up to 2,704
/// bytes, ids beside it included.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// The text of a selector that is not there.
pub(crate) const MISSING_SELECTOR: &str = "selector is not existed";
/// The text of a rule that is not there.
pub(crate) const MISSING_RULE: &str = "rule is not existed";
/// The text of a namespace that is not there.
pub(crate) const MISSING_NAMESPACE: &str = "namespaceId is not existed";

/// The refusal of an object that a path or query names; `place` begins with the name of the
/// reference's handler.
#[must_use]
pub(crate) fn missing(place: &str, text: &str) -> ApiError {
    ApiError::refused(format!("{place}: {text}"))
}

/// A text that is there and not blank.
#[must_use]
pub(crate) fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// Notes a namespace that is absent or unknown.
///
/// # Errors
/// Failures of the store.
pub(crate) async fn namespace_exists(
    tx: &mut Tx,
    namespace_id: Option<&str>,
    rules: &mut Violations,
) -> ApiResult<()> {
    let namespace_id = namespace_id.unwrap_or_default();
    let found = repository::namespace::find(tx, namespace_id).await?.is_some();
    rules.exists("namespaceId", found, MISSING_NAMESPACE);
    Ok(())
}

/// The user to whose grants lists are cut; none for the super user, who sees all.
///
/// # Errors
/// [`ApiError::Token`] without a caller.
pub(crate) fn granted_to(context: &Context) -> ApiResult<Option<String>> {
    let caller = context.caller()?;
    Ok((caller.name != SUPER_USER).then(|| caller.user_id.clone()))
}

/// The ids without repetitions, in their order.
#[must_use]
pub(crate) fn distinct(ids: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Refuses a batch that names what is not there.
///
/// # Errors
/// A refusal that names the first such id. It is ours: the reference fails inside.
pub(crate) fn absent(ids: &[String], is_there: impl Fn(&str) -> bool, what: &str) -> ApiResult<()> {
    let Some(unknown) = ids.iter().find(|id| !is_there(id)) else { return Ok(()) };
    Err(ApiError::refused(format!("ids: {unknown} is not there, expected ids of {what}")))
}

/// The body of batch deletions of selectors and rules: ids and the namespace they are in.
///
/// A list without ids passes here; what it means is the resource's to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BatchDelete {
    /// Ids of the objects.
    pub ids: Option<Vec<String>>,
    /// Their namespace; objects of another one stay.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
}

impl BatchDelete {
    /// The ids without repetitions.
    #[must_use]
    pub(crate) fn ids(&self) -> Vec<String> {
        distinct(self.ids.clone().unwrap_or_default())
    }
}

impl RequestBody for BatchDelete {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        rules.not_null("ids", self.ids.as_ref());
        rules.not_null("namespaceId", self.namespace_id.as_ref());
        let mut tx = state.store().read().await?;
        namespace_exists(&mut tx, self.namespace_id.as_deref(), rules).await
    }
}
