//! A plugin that stands in for `request`, which this build lacks: the host of the client is kept.

use longmen_core::chain::{
    CatalogueEntry, Flow, Handle, HandleFault, HitRef, Hook, HookResult, Notes, Plugin,
    RequestContext, RuleParts,
};
use longmen_core::model::PluginClass;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct PreserveHost;

static ENTRY: CatalogueEntry = CatalogueEntry {
    name: "request",
    order: 120,
    response_order: 120,
    role: "HttpProcess",
    class: PluginClass::Transform,
    label: "stands in for request",
    fields: &[],
};

impl Plugin for PreserveHost {
    fn entry(&self) -> &'static CatalogueEntry {
        &ENTRY
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        let keeps = serde_json::from_str::<Value>(handle)
            .is_ok_and(|handle| handle["preserveHost"] == true);
        Ok(RuleParts::head_only(Handle::new(keeps)))
    }

    fn request_head<'a>(
        &'a self,
        hit: HitRef<'a>,
        cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        cx.preserve_host = hit.rule.parts.handle.get::<bool>().is_some_and(|keeps| *keeps);
        Hook::Ready(Ok(Flow::Continue))
    }

    fn explain(&self, hit: HitRef<'_>, cx: &mut RequestContext, notes: &mut Notes) -> HookResult {
        cx.preserve_host = hit.rule.parts.handle.get::<bool>().is_some_and(|keeps| *keeps);
        if cx.preserve_host {
            notes.effect("keeps the client's host");
        }
        Ok(Flow::Continue)
    }
}
