//! Whole exchanges that one of the two refuses.

use super::Verdict;

pub(super) static ALL: &[Verdict] = &[
    Verdict::on_purpose(
        "dot segments and escaped NUL are refused",
        "design.md 6, Paths",
        "400 before any routing; the reference forwards them",
        |case, _| {
            let path = case.path().to_ascii_lowercase().replace("%2e", ".");
            let dots = path.split('/').any(|segment| segment == "." || segment == "..");
            case.refused_here() && (dots || path.contains("%00"))
        },
    ),
    Verdict::on_purpose(
        "no Host, or two, is refused",
        "design.md 6, HTTP/1.1 framing",
        "400; the reference takes any",
        |case, _| case.refused_here() && case.sent("host").len() != 1,
    ),
    Verdict::on_purpose(
        "a Host unlike the target's authority is refused",
        "design.md 6, HTTP/1.1 framing",
        "400; the reference does not compare them",
        |case, _| case.refused_here() && case.target().contains("://"),
    ),
    Verdict::on_purpose(
        "a target that is no path is refused",
        "RFC 9112, 3.2",
        "400; the reference looks for a selector for it. `*` is no path either, but passes, as there",
        |case, _| case.refused_here() && !case.target().starts_with(['/', '*']),
    ),
    Verdict::on_purpose(
        "transfer codings other than chunked are refused",
        "design.md 6, HTTP/1.1 framing",
        "400, also in HTTP/1.0; the reference passes them on or drops them",
        |case, _| {
            let codings = case.sent("transfer-encoding");
            let plain = codings.len() == 1 && codings[0].eq_ignore_ascii_case("chunked");
            let old = case.line().last().is_some_and(|version| version == "HTTP/1.0");
            case.refused_here() && !codings.is_empty() && (!plain || old)
        },
    ),
    Verdict::on_purpose(
        "HTTP/1.2 and folded headers are refused",
        "design.md 6, HTTP/1.1 framing: everything hyper refuses",
        "400",
        |case, _| {
            let folded = case.exchange.sent.windows(3).any(|window| window == b"\r\n ");
            let version = case.line().last().is_some_and(|version| version == "HTTP/1.2");
            case.refused_here() && (folded || version)
        },
    ),
    Verdict::on_purpose(
        "HTTP/2 without TLS is spoken",
        "dependencies.md 3, accept h1 + h2c on one port",
        "the preface is answered with frames",
        |case, _| case.exchange.sent.starts_with(b"PRI * HTTP/2.0"),
    ),
    Verdict::on_purpose(
        "more characters are taken in targets",
        "design.md 5.1, list below the switch",
        "`{`, `\\|` and the like go on as they came, in the query also incomplete escapes; the reference answers 400",
        |case, _| {
            let query = case.query().unwrap_or_default();
            let odd = case.target().contains(['{', '}', '|', '"', '^', '[', ']', '\\']);
            case.served_here() && (odd || query.contains('%'))
        },
    ),
    Verdict::on_purpose(
        "equal repeated Content-Length is taken",
        "design.md 5.1, list below the switch",
        "merged to one; the reference answers 400",
        |case, _| case.served_here() && case.sent("content-length").len() > 1,
    ),
    Verdict::on_purpose(
        "conditions that cannot be used never match",
        "gateway-core.md 2.8, ours",
        "refused when saved; here as if they did not match. The reference fails the request",
        |case, _| {
            let refused =
                case.our_body_starts("{\"code\":-102") || case.our_body_starts("{\"code\":-107");
            matches!(case.exchange.got.status, 400 | 500)
                && refused
                && (case.record.starts_with("GC-26") || case.is("GE-12"))
        },
    ),
    Verdict::on_purpose(
        "a time condition without a name compares with now",
        "gateway-core.md 2.3",
        "with an empty name as with none; the reference fails on the empty one",
        |case, _| {
            case.exchange.got.status == 500
                && case.record.starts_with("GC-26.")
                && case.ours.answer.status() == 200
        },
    ),
    Verdict::on_purpose(
        "a balancer that nobody knows",
        "gateway-core.md 5.1, step 6; design.md 3, parse at sync time",
        "the rule cannot be read, so it does not match; the reference answers 400 to each request",
        |case, _| case.is("GC-38n"),
    ),
    Verdict::on_purpose(
        "handles with nothing in them",
        "gateway-core.md 5.1, [F]",
        "defaults; the reference fails on a blank balancer and on an empty handle",
        |case, _| case.is_one_of(&["GC-38m", "GC-38o"]),
    ),
    Verdict::on_purpose(
        "host names are compared without case",
        "design.md 5.1, list below the switch",
        "in `domain` conditions",
        |case, _| case.is("GE-13d") && case.sent("host") == ["GW.test"],
    ),
    Verdict::on_purpose(
        "chunked bodies are limited too",
        "gateway-core.md 9.2, GC-40",
        "413 past a rule's `requestMaxSize`; the reference looks at the announced length alone",
        |case, _| {
            case.is("GC-40")
                && case.our_body_starts("{\"code\":413")
                && case.exchange.got.body.starts_with(b"{\"name\"")
        },
    )
    .once_in_force(),
];
