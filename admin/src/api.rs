//! The endpoints, one module per resource. To add one: its module here, its line in [`routes`].

mod dashboard_user;
mod health;
mod menu;
mod namespace;
mod namespace_plugin;
mod operation_log;
mod platform;
mod plugin_handle;
mod plugin_template;

use crate::{openapi, publish, router::Routes};

/// All routes of the admin.
#[must_use]
pub fn routes() -> Routes {
    Routes::new("admin")
        .merge(openapi::viewer_routes())
        .merge(health::routes())
        .merge(platform::routes())
        .merge(dashboard_user::routes())
        .merge(menu::routes())
        .merge(namespace::routes())
        .merge(namespace_plugin::routes())
        .merge(plugin_template::routes())
        .merge(plugin_handle::routes())
        .merge(operation_log::routes())
        .merge(publish::routes())
}
