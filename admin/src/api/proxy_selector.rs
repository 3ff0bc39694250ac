//! `/proxy-selector`: bindings of selectors to upstreams, and raw ports.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: writes need `system:plugin:edit` (the reference asks
//! for nothing); a selector is bound once; a changed port or name is told to our own gateways (the
//! reference pushes the upstreams alone).

mod bind;
mod port;
mod read;

pub(crate) mod request;
pub(crate) mod response;

use crate::permission::Permission::{self, AnyOf, Authenticated};
use crate::router::Routes;

const EDIT: Permission = AnyOf(&["system:plugin:edit"]);

/// The routes of bindings and raw ports.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("proxy-selector")
        .get("/proxy-selector", Authenticated, "Lists raw ports of a namespace", read::list)
        .post("/proxy-selector/binding", EDIT, "Binds a selector to upstreams", bind::bind)
        .put(
            "/proxy-selector/fetch/{discoveryHandlerId}",
            EDIT,
            "Sends the upstreams of a discovery handler again",
            bind::fetch,
        )
        .post("/proxy-selector/addProxySelector", EDIT, "Creates a raw port", port::create)
        .put("/proxy-selector/{id}", EDIT, "Changes a raw port", port::update)
        .delete("/proxy-selector/batch", EDIT, "Deletes raw ports", port::delete)
}
