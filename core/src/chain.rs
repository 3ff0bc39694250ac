//! The contract of plugins, and the driver that runs them.
//!
//! A plugin is compiled at sync time and takes part in a request through *hooks*, in this order:
//!
//! | hook | when | may |
//! |---|---|---|
//! | [`Plugin::request_head`] | its selector and rule matched | change head and target, answer, fail, wait |
//! | [`Plugin::request_body_filter`] | its rule declared [`BodyMode::Filter`] | change bytes as they flow |
//! | [`Plugin::request_body`] | its rule declared [`BodyMode::Whole`] | see and replace the whole body, answer, fail |
//! | [`Plugin::around`] | the upstream is called | call, call again elsewhere, answer instead |
//! | [`Plugin::attempt`] | each attempt on an upstream ended | count |
//! | [`Plugin::response_head`] | an answer is there | change it, replace it, fail, wait |
//! | [`Plugin::response_body_filter`] | its rule declared [`BodyMode::Filter`] | change bytes as they flow, without delay |
//! | [`Plugin::response_body`] | its rule declared [`BodyMode::Whole`] | see and replace the whole body |
//! | [`Plugin::completion`] | exactly once, after the last byte or when the client is gone | count, log |
//!
//! What a rule takes part in is decided when it is compiled ([`RuleParts`]), so a request that does
//! not match costs neither an allocation nor a future, and nobody's body is buffered unasked. What a
//! plugin holds for a request (a permit, an in-flight count) is a guard in its state
//! ([`RequestContext::keep`]): dropped with the request, wherever that ends.
//!
//! The hooks that decide have an *explain* twin ([`Plugin::explain`]), which does to a context made for
//! the purpose what they would do to a request's, and nothing else; [`crate::explain`] asks it.

mod arrival;
mod body_hooks;
mod catalogue;
mod client_address;
mod completion;
mod context;
mod driver;
mod edge;
mod explained;
mod forwarding;
mod handle;
mod plugin;
mod query;
mod target;
mod view;

pub(crate) use arrival::refuse_early;
pub use arrival::{Arrival, Observed, answer_early};
pub use body_hooks::{BodyFilter, collect};
pub use catalogue::{CatalogueEntry, FieldType, FormField, FormScope, KnownPlugin, Registry};
pub use completion::{Completion, Exchange, NotRetried, Outcome};
pub use context::{Inbound, RequestContext, RpcType};
pub use driver::{CallOptions, Driver, DriverOptions, TunnelLimits, TunnelTotals, Tunnels};
pub(crate) use driver::{Found, as_sent, find, keep_end_to_end, other_form, protocol, unavailable};
pub use edge::{Connection, Edge, Forwarded};
pub use explained::Notes;
pub(crate) use explained::{Balanced, Decisions};
pub use forwarding::{X_REQUEST_ID, request_id};
pub use handle::{Handle, HandleFault, HandleType, read_handle};
pub use plugin::{
    Around, Attempt, BodyFlow, BodyMode, Flow, Hit, HitRef, Hook, HookResult, Hooks, Plugin,
    RuleParts,
};
pub use target::{Target, TargetKind, TargetPolicy};
pub(crate) use view::View;

#[cfg(test)]
mod tests;
