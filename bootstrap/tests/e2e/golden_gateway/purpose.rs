//! What differs from the recordings on purpose, with the place where that is decided.

mod answers;
mod forwarding;
mod refusals;

use longmen_benchmark::raw::{head_lines, header_values};

use super::compare::{Check, Difference, Ours};
use super::record::Exchange;

/// Where a difference was found.
pub(crate) struct Case<'a> {
    pub(crate) file: &'a str,
    pub(crate) record: &'a str,
    /// As recorded.
    pub(crate) exchange: &'a Exchange,
    pub(crate) ours: &'a Ours,
}

/// Why a difference is no fault.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// A short name, as in the page.
    pub(crate) name: &'static str,
    /// Where it is decided.
    pub(crate) place: &'static str,
    /// What is different.
    pub(crate) why: &'static str,
    /// Whether nearly every request has it.
    pub(crate) everywhere: bool,
    /// Whether the recordings may be without a difference of this kind.
    pub(crate) may_be_idle: bool,
    fits: fn(&Case<'_>, &Difference) -> bool,
}

impl Verdict {
    const fn on_purpose(
        name: &'static str,
        place: &'static str,
        why: &'static str,
        fits: fn(&Case<'_>, &Difference) -> bool,
    ) -> Self {
        Self { name, place, why, everywhere: false, may_be_idle: false, fits }
    }

    const fn everywhere(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// What is decided, but not in force in every build.
    const fn once_in_force(mut self) -> Self {
        self.may_be_idle = true;
        self
    }
}

/// All verdicts, in the order in which they are tried.
pub(crate) fn verdicts() -> impl Iterator<Item = &'static Verdict> {
    [refusals::ALL, forwarding::ALL, answers::ALL].into_iter().flatten()
}

/// The verdict on a difference, if there is one.
pub(crate) fn verdict(case: &Case<'_>, difference: &Difference) -> Option<&'static Verdict> {
    let fits = |verdict: &&Verdict| (verdict.fits)(case, difference);
    verdicts().filter(|verdict| verdict.everywhere).find(fits).or_else(|| verdicts().find(fits))
}

impl Case<'_> {
    fn is(&self, record: &str) -> bool {
        self.record.split(' ').next() == Some(record)
    }

    fn is_one_of(&self, records: &[&str]) -> bool {
        records.iter().any(|record| self.is(record))
    }

    fn note(&self) -> &str {
        &self.exchange.note
    }

    /// The words of the request line that was sent.
    fn line(&self) -> Vec<String> {
        let line = head_lines(&self.exchange.sent).next().unwrap_or_default();
        String::from_utf8_lossy(line).split(' ').map(str::to_owned).collect()
    }

    fn method(&self) -> String {
        self.line().into_iter().next().unwrap_or_default()
    }

    /// The target that was sent.
    fn target(&self) -> String {
        self.line().into_iter().nth(1).unwrap_or_default()
    }

    fn path(&self) -> String {
        self.target().split(['?', '#']).next().unwrap_or_default().to_owned()
    }

    fn query(&self) -> Option<String> {
        self.target().split_once('?').map(|(_, query)| query.to_owned())
    }

    /// The values of a header that was sent.
    fn sent(&self, name: &str) -> Vec<String> {
        let end = self.exchange.sent.windows(4).position(|window| window == b"\r\n\r\n");
        let head = &self.exchange.sent[..end.unwrap_or(self.exchange.sent.len())];
        header_values(head)
            .into_iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
            .collect()
    }

    fn has_body(&self) -> bool {
        !self.sent("transfer-encoding").is_empty() || !self.sent("content-length").is_empty()
    }

    /// Whether ours is the refusal of a request that the reference served, or served in part.
    fn refused_here(&self) -> bool {
        self.ours.answer.status() == 400 && self.exchange.got.status != 400
    }

    /// Whether ours serves what the reference refused.
    fn served_here(&self) -> bool {
        self.exchange.got.status == 400 && self.ours.answer.status() == 200
    }

    fn our_body_starts(&self, start: &str) -> bool {
        self.ours.answer.body.starts_with(start.as_bytes())
    }
}

/// Whether the check looks at what went to an upstream.
fn upstream_header(difference: &Difference, names: &[&str]) -> bool {
    matches!(&difference.check, Check::UpstreamHeader(name) if names.contains(&name.as_str()))
}

fn header(difference: &Difference, names: &[&str]) -> bool {
    matches!(&difference.check, Check::Header(name) if names.contains(&name.as_str()))
}
