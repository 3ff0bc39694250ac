//! What this build does not do yet.

use super::Verdict;
use crate::golden_gateway::compare::Check;

pub(super) static ALL: &[Verdict] = &[
    Verdict::not_yet(
        "retries and failover",
        "further attempts, and the answers when they are used up",
        |case, _| {
            case.is_one_of(&["GC-34", "GC-34c", "GC-34d", "GC-34e", "GC-34f", "GC-35", "GC-36"])
        },
    ),
    Verdict::not_yet("the plugin `request`", "headers and parameters of requests", |case, _| {
        case.is("GC-33") && case.note() == "preserveHost"
    }),
    Verdict::not_yet("CORS", "the filter for requests of other origins", |case, difference| {
        let named =
            matches!(&difference.check, Check::Header(name) if name.starts_with("access-control-"));
        named
            || (case.method() == "OPTIONS"
                && case.is("GC-39")
                && !case.sent("origin").is_empty()
                && case.exchange.upstream.is_empty())
    }),
    Verdict::not_yet(
        "the body of GET and HEAD",
        "it is dropped under `getBody: drop`; here it is still passed on",
        |case, difference| {
            case.is("GE-04")
                && matches!(case.method().as_str(), "GET" | "HEAD")
                && difference.check == Check::UpstreamBody
                && difference.ours.contains("hello")
        },
    ),
    Verdict::not_yet(
        "limits of request line and header section",
        "both are compared with their sum",
        |case, _| {
            case.is("GE-01")
                && matches!(case.exchange.got.status, 414 | 431)
                && case.ours.answer.status() == 200
        },
    ),
];
