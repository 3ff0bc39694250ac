//! The endpoints, one module per resource. To add one: its module here, its line in [`routes`].

mod health;
mod platform;

use crate::{openapi, router::Routes};

/// All routes of the admin.
#[must_use]
pub fn routes() -> Routes {
    Routes::new("admin")
        .merge(openapi::viewer_routes())
        .merge(health::routes())
        .merge(platform::routes())
}
