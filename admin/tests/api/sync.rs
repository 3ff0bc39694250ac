//! What gateways get, over real websockets.

mod changes;
mod gateway;
mod handshake;
mod objects;
mod postgres;
mod refresh;
mod sessions;

use serde_json::Value;

/// The recorded admin ran on H2, whose seed is not that of the other stores (golden/README.md):
/// plugin 66 is missing and `aiProxy` has sort 200. Makes a frame of ours look as if seeded so.
pub(crate) fn as_recorded_seed(frame: &mut Value) {
    if frame["groupType"] != "PLUGIN" {
        return;
    }
    let Some(plugins) = frame["data"].as_array_mut() else { return };
    if plugins.len() < 2 {
        return;
    }
    plugins.retain(|plugin| plugin["id"] != "66");
    for plugin in plugins.iter_mut().filter(|plugin| plugin["name"] == "aiProxy") {
        plugin["sort"] = 200.into();
    }
    plugins
        .sort_by_key(|plugin| (plugin["sort"].as_i64(), plugin["id"].as_str().map(str::to_owned)));
}
