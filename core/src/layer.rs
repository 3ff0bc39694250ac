//! Our own tower middleware. The order in which it is stacked is decided in one place, the gateway's
//! `stack.rs`.
//!
//! Most of what stands before the chain only looks at the head and either lets a request pass,
//! answers it, or refuses it: that is an [`Admission`], and [`Admit`] is the one service for all of
//! them. It is always ready, allocates nothing and adds no future of its own.

mod admit;
mod collapse_slashes;
mod cross;
mod error_response;
mod file_size;
mod fixed_paths;
mod framing;
mod head_limits;
mod in_flight;
mod panic_guard;
mod path_rules;
mod request_id;

pub use admit::{Admission, Admit, AdmitLayer, Admitted};
pub use collapse_slashes::CollapseSlashes;
pub use cross::{Cross, CrossFault, CrossFuture, CrossLayer, CrossOptions, CrossRules, Preflight};
pub use error_response::{ErrorResponse, ErrorResponseFuture, ErrorResponseLayer};
pub use file_size::FileSize;
pub use fixed_paths::FixedPaths;
pub use framing::Framing;
pub use head_limits::HeadLimits;
pub use in_flight::{InFlightLimit, Permit};
pub use panic_guard::{PanicGuard, PanicGuardLayer};
pub use path_rules::PathRules;
pub use request_id::{RequestId, RequestIdFuture, RequestIdLayer};
