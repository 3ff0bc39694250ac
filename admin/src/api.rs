//! The endpoints, one module per resource. To add one: its module here, its line in [`routes`].

mod api_doc;
mod client;
mod common;
mod condition;
mod conditioned;
mod dashboard_user;
mod discovery;
mod discovery_upstream;
mod gateway;
mod handle;
mod health;
mod instance;
mod menu;
mod meta_data;
mod namespace;
mod namespace_plugin;
mod operation_log;
mod platform;
mod plugin_handle;
mod plugin_template;
mod proxy_selector;
#[cfg(test)]
mod recorded;
mod rule;
mod search;
mod selector;

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
        .merge(selector::routes())
        .merge(rule::routes())
        .merge(proxy_selector::routes())
        .merge(discovery::routes())
        .merge(discovery_upstream::routes())
        .merge(meta_data::routes())
        .merge(client::routes())
        .merge(api_doc::routes())
        .merge(publish::routes())
        .merge(gateway::routes())
        .merge(instance::routes())
}
