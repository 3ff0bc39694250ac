//! Bodies and rules of upstream writes.

use longmen_db::Tx;
use longmen_db::repository::{self, upstream::NewUpstream};
use serde::Deserialize;
use utoipa::{PartialSchema, ToSchema};

use super::address::check_upstream;
use crate::api::common::{MISSING_NAMESPACE, filled};
use crate::error::ApiResult;
use crate::extract::{Bind, Incoming, InputDoc, RequestBody, Violations, lenient, read_json};
use crate::state::AppState;

/// An upstream to create or change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpstreamRequest {
    /// The upstream to change; absent for a new one.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// The discovery handler it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub discovery_handler_id: Option<String>,
    /// The namespace it belongs to.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub namespace_id: Option<String>,
    /// Scheme with separator, such as `http://`; absent means the plugin's default.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub protocol: Option<String>,
    /// `host:port`.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub url: Option<String>,
    /// 0 = usable, 1 = down.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub status: Option<i32>,
    /// Share of the traffic.
    #[serde(default, deserialize_with = "lenient::opt_i32")]
    pub weight: Option<i32>,
    /// Further settings, JSON text.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub props: Option<String>,
}

impl UpstreamRequest {
    /// The field rules that need no look into the store.
    ///
    /// Source: ShenYu 2.7.1, rules of the upstream body.
    pub(crate) fn rules(&self, rules: &mut Violations) {
        let handler = self.discovery_handler_id.as_deref();
        rules.not_blank_text("discoveryHandlerId", handler, "discoveryHandlerId can't be null");
        rules.not_blank("namespaceId", self.namespace_id.as_deref());
        rules.not_blank_text("url", self.url.as_deref(), "url can't be null");
        rules.not_null_text("status", self.status.as_ref(), "status can't be null");
        rules.not_null_text("weight", self.weight.as_ref(), "weight can't be null");
        rules.not_blank_text("props", self.props.as_deref(), "props can't be null");
    }

    /// The upstream that the body names, if it names one.
    #[must_use]
    pub(crate) fn id(&self) -> Option<&str> {
        filled(self.id.as_deref())
    }

    /// Checks what gateways read, after the field rules held.
    ///
    /// # Errors
    /// Field, value and expectation.
    pub(crate) fn usable(&self) -> Result<(), String> {
        check_upstream(
            self.url.as_deref().unwrap_or_default(),
            self.status.unwrap_or_default(),
            self.weight.unwrap_or_default(),
            self.props.as_deref(),
        )
    }

    /// The upstream that is stored.
    #[must_use]
    pub(crate) fn to_new(&self) -> NewUpstream {
        NewUpstream {
            namespace_id: self.namespace_id.clone().unwrap_or_default(),
            protocol: self.protocol.clone(),
            url: self.url.clone().unwrap_or_default(),
            status: self.status.unwrap_or_default(),
            weight: self.weight.unwrap_or_default(),
            props: self.props.clone(),
            ..NewUpstream::default()
        }
    }

    async fn look_up(&self, tx: &mut Tx) -> ApiResult<Found> {
        let upstream = match self.id() {
            Some(id) => repository::upstream::find(tx, id).await?.is_some(),
            None => true,
        };
        let namespace = self.namespace_id.as_deref().unwrap_or_default();
        let namespace = repository::namespace::find(tx, namespace).await?.is_some();
        Ok(Found { upstream, namespace })
    }
}

/// What a request names that exists.
struct Found {
    upstream: bool,
    namespace: bool,
}

impl Found {
    fn rules(&self, rules: &mut Violations) {
        rules.exists("id", self.upstream, "discovery upstream not exited");
        rules.exists("namespaceId", self.namespace, MISSING_NAMESPACE);
    }
}

impl RequestBody for UpstreamRequest {
    async fn check(&self, state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        let mut tx = state.store().read().await?;
        self.look_up(&mut tx).await?.rules(rules);
        Ok(())
    }
}

/// A list of upstreams. Its elements are checked by the handler: their rules count as rules on a
/// parameter, which come after the permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamRequests(pub Vec<UpstreamRequest>);

impl UpstreamRequests {
    /// Notes the violated rules of each element; `parameter` is the reference's name of the list.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn check(
        &self,
        tx: &mut Tx,
        parameter: &str,
        rules: &mut Violations,
    ) -> ApiResult<()> {
        for (index, request) in self.0.iter().enumerate() {
            let found = request.look_up(tx).await?;
            rules.within(&format!("{parameter}[{index}]."), |rules| {
                request.rules(rules);
                found.rules(rules);
            });
        }
        Ok(())
    }
}

impl Bind for UpstreamRequests {
    async fn bind(request: &Incoming) -> ApiResult<Self> {
        read_json(&request.body).map(Self)
    }

    fn describe(doc: &mut InputDoc) {
        UpstreamRequest::schemas(&mut doc.schemas);
        doc.body = Some(("application/json", <Vec<UpstreamRequest> as PartialSchema>::schema()));
    }
}
