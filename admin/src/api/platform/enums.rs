//! `GET /platform/enum`.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{context::Context, error::ApiResult, reply::Reply};

/// One constant.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct EnumEntry {
    code: Option<i32>,
    name: &'static str,
    support: bool,
}

/// Constants that have a name alone.
const NAMED: &[(&str, &[&str])] = &[
    ("httpMethodEnums", &["get", "post", "put", "delete"]),
    (
        "operatorEnums",
        &[
            "match",
            "=",
            "regex",
            "contains",
            "startsWith",
            "endsWith",
            "TimeBefore",
            "exclude",
            "TimeAfter",
            "pathPattern",
            "isBlank",
        ],
    ),
    (
        "paramTypeEnums",
        &[
            "path",
            "form-data",
            "post",
            "uri",
            "query",
            "host",
            "ip",
            "header",
            "cookie",
            "req_method",
            "domain",
        ],
    ),
    ("pluginTypeEnums", &["before", "function", "last"]),
    ("redisModeEnums", &["cluster", "sentinel", "standalone"]),
    (
        "rpcTypeEnums",
        &["http", "dubbo", "sofa", "tars", "websocket", "springCloud", "grpc", "ai", "mcp"],
    ),
    ("serializeEnums", &["jdk", "kryo", "hessian", "protostuff"]),
];

/// Constants with a number.
const NUMBERED: &[(&str, &[(i32, &str)])] = &[
    ("hystrixIsolationModeEnums", &[(0, "thread"), (1, "semaphore")]),
    (
        "loadBalanceEnums",
        &[
            (1, "hash"),
            (2, "random"),
            (3, "roundRobin"),
            (4, "leastActive"),
            (5, "p2c"),
            (6, "shortestResponse"),
        ],
    ),
    ("matchModeEnums", &[(0, "and"), (1, "or")]),
    ("pluginEnums", PLUGINS),
    ("selectorTypeEnums", &[(0, "full"), (1, "custom")]),
    ("wafEnums", &[(0, "reject"), (1, "allow")]),
];

/// Built-in plugins with their places in the chain, in the reference's order.
#[rustfmt::skip]
const PLUGINS: &[(i32, &str)] = &[
    (-1, "global"), (320, "tcp"), (125, "mqtt"), (1, "mock"), (10, "cache"), (15, "metrics"),
    (20, "sign"), (30, "jwt"), (40, "oauth2"), (40, "casdoor"), (50, "waf"), (60, "rateLimiter"),
    (65, "aiRequestTransformer"), (66, "aiResponseTransformer"), (70, "paramMapping"),
    (80, "contextPath"), (90, "rewrite"), (100, "cryptorRequest"), (110, "redirect"),
    (120, "request"), (125, "generalContext"), (130, "hystrix"), (140, "sentinel"),
    (310, "resilience4j"), (160, "loggingConsole"), (170, "aiPrompt"), (170, "loggingRocketMQ"),
    (171, "loggingRabbitMQ"), (175, "loggingAliyunSls"), (176, "loggingTencentCls"),
    (177, "loggingHuaweiLts"), (180, "loggingKafka"), (185, "loggingPulsar"),
    (190, "loggingElasticSearch"), (195, "loggingClickHouse"), (200, "divide"),
    (200, "springCloud"), (200, "websocket"), (205, "uri"), (210, "webClient"),
    (210, "nettyHttpClient"), (220, "modifyResponse"), (300, "paramTransform"), (310, "dubbo"),
    (310, "sofa"), (310, "tars"), (310, "grpc"), (410, "cryptorResponse"), (420, "response"),
    (150, "keyAuth"), (199, "aiProxy"), (171, "aiTokenLimiter"), (180, "mcpServer"),
    (150, "basicAuth"),
];

/// All constants by the name of their list.
pub(super) async fn enums(
    _context: Context,
    (): (),
) -> ApiResult<Reply<BTreeMap<&'static str, Vec<EnumEntry>>>> {
    let entry = |code, name| EnumEntry { code, name, support: true };
    let named = NAMED
        .iter()
        .map(|(list, names)| (*list, names.iter().map(|name| entry(None, *name)).collect()));
    let numbered = NUMBERED.iter().map(|(list, entries)| {
        (*list, entries.iter().map(|(code, name)| entry(Some(*code), *name)).collect())
    });
    Ok(Reply::data(named.chain(numbered).collect()))
}
