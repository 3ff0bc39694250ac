//! The one list of plugins.

use longmen_core::chain::{KnownPlugin, Registry};
use longmen_core::model::PluginClass;

use crate::context_path::ContextPath;
use crate::divide::Divide;
use crate::rewrite::Rewrite;
use crate::websocket::WebSocket;

/// All plugins of this build, and the names of those of the reference that it may lack.
#[must_use]
pub fn registry() -> Registry {
    Registry::new(KNOWN).with(ContextPath).with(Rewrite).with(Divide).with(WebSocket)
}

const fn known(name: &'static str, order: i32, class: PluginClass) -> KnownPlugin {
    KnownPlugin { name, order, class }
}

use PluginClass::{Guard, Observe, Proxy, Transform};

/// The plugins of the reference with their places in the chain.
///
/// Source: ShenYu 2.7.1, built-in order.
const KNOWN: &[KnownPlugin] = &[
    known("mock", 1, Transform),
    known("cache", 10, Transform),
    known("metrics", 15, Observe),
    known("sign", 20, Guard),
    known("jwt", 30, Guard),
    known("oauth2", 40, Guard),
    known("casdoor", 40, Guard),
    known("waf", 50, Guard),
    known("rateLimiter", 60, Guard),
    known("aiRequestTransformer", 65, Transform),
    known("aiResponseTransformer", 66, Transform),
    known("paramMapping", 70, Transform),
    known("contextPath", 80, Transform),
    known("rewrite", 90, Transform),
    known("cryptorRequest", 100, Guard),
    known("redirect", 110, Transform),
    known("request", 120, Transform),
    known("generalContext", 125, Transform),
    known("mqtt", 125, Proxy),
    known("hystrix", 130, Transform),
    known("sentinel", 140, Transform),
    known("keyAuth", 150, Guard),
    known("basicAuth", 150, Guard),
    known("loggingConsole", 160, Observe),
    known("aiPrompt", 170, Transform),
    known("loggingRocketMQ", 170, Observe),
    known("loggingRabbitMQ", 171, Observe),
    known("aiTokenLimiter", 171, Transform),
    known("loggingAliyunSls", 175, Observe),
    known("loggingTencentCls", 176, Observe),
    known("loggingHuaweiLts", 177, Observe),
    known("loggingKafka", 180, Observe),
    known("mcpServer", 180, Transform),
    known("loggingPulsar", 185, Observe),
    known("loggingElasticSearch", 190, Observe),
    known("loggingClickHouse", 195, Observe),
    known("aiProxy", 199, Proxy),
    known("divide", 200, Proxy),
    known("websocket", 200, Proxy),
    known("modifyResponse", 220, Transform),
    known("dubbo", 310, Proxy),
    known("sofa", 310, Proxy),
    known("tars", 310, Proxy),
    known("grpc", 310, Proxy),
    known("resilience4j", 310, Transform),
    known("tcp", 320, Proxy),
    known("cryptorResponse", 410, Transform),
];
