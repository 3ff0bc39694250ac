//! How answers come back.

use longmen_benchmark::raw::header_values;

use super::{Case, Verdict, header};
use crate::golden_gateway::compare::Check;

/// Whether both refuse, with the same status.
fn both_refuse(case: &Case<'_>) -> bool {
    let status = case.ours.answer.status();
    status == case.exchange.got.status && matches!(status, 400 | 413 | 414 | 431)
}

pub(super) static ALL: &[Verdict] = &[
    Verdict::on_purpose(
        "answers have a `Date`",
        "RFC 9110, 6.6.1",
        "the reference sends none of its own",
        |_, difference| header(difference, &["date"]) && difference.recorded == "(none)",
    )
    .everywhere(),
    Verdict::on_purpose(
        "refusals say why",
        "field-cases.md C-36; design.md 3.1, one error type",
        "JSON with code and message; the reference's have no body",
        |case, difference| {
            both_refuse(case)
                && case.exchange.got.body.is_empty()
                && (header(difference, &["content-type", "content-length"])
                    || difference.check == Check::Body)
        },
    ),
    Verdict::on_purpose(
        "refusals close the connection",
        "design.md 6: refused with 400 and closed",
        "the reference keeps it where the query is at fault",
        |case, difference| {
            both_refuse(case)
                && (header(difference, &["connection"]) || difference.check == Check::Closed)
        },
    ),
    Verdict::on_purpose(
        "an upstream's `Connection` is its own",
        "design.md 6; gateway-core.md 5.3 and 5.5 [F]",
        "neither it nor what it names is passed on, and the client's connection stays open",
        |case, difference| {
            let named = ["connection", "keep-alive", "proxy-authenticate", "x-hop"];
            case.is_one_of(&["GE-07", "GK-04"])
                && ((header(difference, &named) && difference.ours == "(none)")
                    || (difference.check == Check::Closed && difference.ours == "false"))
        },
    ),
    Verdict::on_purpose(
        "`preserveHost` needs nothing beside it",
        "gateway-core.md 9.2, GC-33; plugins.md, request [F]",
        "the client's host goes to the upstream, by a plugin that stands in for `request`; alone it makes the reference answer 500",
        |case, _| {
            let [(_, request)] = &case.ours.upstream[..] else { return false };
            let hosts = header_values(&request.head);
            let kept = hosts.contains(&("host".to_owned(), b"api.example".to_vec()));
            case.is("GC-33") && case.note() == "preserveHost" && kept
        },
    ),
    Verdict::on_purpose(
        "weight 0 is never chosen",
        "field-cases.md C-12; gateway-core.md 5.7",
        "on failover neither: nobody is left to try; the reference tries the upstream that was switched off",
        |case, _| case.is("GC-34f"),
    ),
    Verdict::on_purpose(
        "`webClient` drops what the CORS filter had set",
        "gateway-core.md 5.5, [F]",
        "one behaviour by both clients: the upstream's values win, and the filter's others stay",
        |case, difference| {
            let filter_s = ["access-control-allow-headers", "access-control-max-age"];
            case.file.starts_with("webclient")
                && case.is("GC-39")
                && header(difference, &filter_s)
                && difference.recorded == "(none)"
        },
    ),
    Verdict::on_purpose(
        "HTTP/1.0 says when a connection stays",
        "RFC 9112, 9.3",
        "`keep-alive` where it stays, nothing where it ends; the reference says the opposite, to the same end",
        |case, difference| {
            case.line().last().is_some_and(|version| version == "HTTP/1.0")
                && header(difference, &["connection"])
        },
    ),
    Verdict::on_purpose(
        "Content-Length beside chunked ends the connection",
        "design.md 6, HTTP/1.1 framing; RFC 9112, 6.3",
        "read as chunked, as there, but closed after the answer",
        |case, difference| {
            !case.sent("content-length").is_empty()
                && !case.sent("transfer-encoding").is_empty()
                && (header(difference, &["connection"]) || difference.check == Check::Closed)
        },
    ),
    Verdict::on_purpose(
        "a body that was not read ends the connection",
        "RFC 9112, 9.3",
        "what is left of it cannot be told from a further request",
        |case, difference| {
            matches!(case.note(), "3 of 10 bytes, then nothing more for 6 s")
                && (header(difference, &["connection"]) || difference.check == Check::Closed)
        },
    ),
    Verdict::on_purpose(
        "103 is not the final answer",
        "design.md 5.1, list below the switch",
        "it is swallowed, and the answer follows",
        |case, _| case.note() == "103 then 200",
    ),
    Verdict::on_purpose(
        "an upstream that speaks no HTTP",
        "gateway-core.md 5.5, [F]; design.md 5.1, row refused or reset",
        "500; the reference blames the client with 400 by one of its clients",
        |case, _| case.note() == "bad status line" && case.ours.answer.status() == 500,
    ),
    Verdict::on_purpose(
        "heads of answers up to 64 KiB",
        "design.md 5.1, list below the switch",
        "the reference fails past 8 KiB",
        |case, _| case.note() == "header 9000" && case.ours.answer.status() == 200,
    ),
    Verdict::on_purpose(
        "close codes of websockets are kept",
        "field-cases.md C-29",
        "all that may be sent; the reference replaces 1012 and 1013",
        |case, difference| {
            case.note().starts_with("upstream closes with 101") && difference.check == Check::Body
        },
    ),
    Verdict::on_purpose(
        "a websocket whose upstream dies",
        "field-cases.md C-29",
        "ends abnormally for the client too; the reference sends a close frame without a code",
        |case, difference| {
            case.note() == "upstream drops the connection" && difference.check == Check::Body
        },
    ),
];
