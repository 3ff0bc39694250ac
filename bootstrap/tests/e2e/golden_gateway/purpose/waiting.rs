//! What this build does not do yet.

use super::Verdict;

pub(super) static ALL: &[Verdict] =
    &[Verdict::not_yet("the plugin `request`", "headers and parameters of requests", |case, _| {
        case.is("GC-33") && case.note() == "preserveHost"
    })];
