//! `/discovery-upstream`: upstreams of bound selectors and raw ports.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: writes need `system:plugin:edit` (the reference asks
//! for nothing); a list is written in one transaction; deletions are told to our own gateways (the
//! reference pushes nothing).

mod write;

pub(crate) mod address;
pub(crate) mod request;
pub(crate) mod response;

use crate::permission::Permission::{self, AnyOf};
use crate::router::Routes;

const EDIT: Permission = AnyOf(&["system:plugin:edit"]);

/// The routes of upstreams.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("discovery-upstream")
        .post("/discovery-upstream", EDIT, "Creates or changes an upstream", write::save)
        .post("/discovery-upstream/batch", EDIT, "Creates or changes upstreams", write::save_all)
        .put(
            "/discovery-upstream/{discoveryHandlerId}",
            EDIT,
            "Replaces the upstreams of a discovery handler",
            write::replace,
        )
        .delete("/discovery-upstream/batch", EDIT, "Deletes upstreams", write::delete)
}
