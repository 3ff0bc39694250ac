//! What plugins tell of what they would do.

use std::net::IpAddr;
use std::sync::Arc;

use crate::upstream::{Endpoint, LoadBalance, Share, UpstreamSet};

/// What the explain twin of a plugin tells; see [`Plugin::explain`](super::Plugin::explain).
#[derive(Debug, Default)]
pub struct Notes {
    effects: Vec<String>,
    external: Vec<String>,
    decisions: Decisions,
    balanced: Option<Balanced>,
}

/// What a balancer would choose from.
#[derive(Debug)]
pub(crate) struct Balanced {
    /// The balancer; `None` where the request names its upstream.
    pub(crate) how: Option<LoadBalance>,
    /// Each upstream with its chance.
    pub(crate) shares: Vec<Share>,
}

/// What chance decided on one way through the plugins: given in part, and decided for the likelier
/// from there on.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    given: Vec<bool>,
    taken: Vec<Decision>,
}

/// One thing that chance decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    /// What happened, in words.
    pub(crate) what: String,
    /// Whether the thing happened.
    pub(crate) yes: bool,
    /// How likely that is, in per cent; more than 0.
    pub(crate) percent: f64,
}

// === impl Notes ===

impl Notes {
    /// Tells an effect, in words for a person.
    pub fn effect(&mut self, text: impl Into<String>) {
        self.effects.push(text.into());
    }

    /// Names a call to somewhere else that the hook would make; it is not made.
    pub fn external(&mut self, call: impl Into<String>) {
        self.external.push(call.into());
    }

    /// Whether something happens that happens to `percent` of 100 requests.
    ///
    /// Both ways are explained, one after the other: the plugin is asked again for the other one.
    /// `then` and `otherwise` say what happens, in words. What is certain is no chance.
    pub fn chance(
        &mut self,
        percent: u8,
        then: impl Into<String>,
        otherwise: impl Into<String>,
    ) -> bool {
        let percent = percent.min(100);
        let yes = match percent {
            0 => false,
            100 => true,
            _ => self.decisions.next(percent),
        };
        let text = if yes { then.into() } else { otherwise.into() };
        if (1..100).contains(&percent) {
            let percent = f64::from(if yes { percent } else { 100 - percent });
            self.decisions.taken.push(Decision { what: text.clone(), yes, percent });
            self.effects.push(format!("{percent} % of requests: {text}"));
        } else {
            self.effects.push(text);
        }
        yes
    }

    /// The upstream that a balancer would most probably choose; which ones it chooses from is told.
    pub fn choose(
        &mut self,
        upstreams: &UpstreamSet,
        how: LoadBalance,
        client: IpAddr,
    ) -> Option<Arc<Endpoint>> {
        let shares = upstreams.shares(how, client);
        let likely = Share::likeliest(&shares).map(|share| Arc::clone(&share.endpoint));
        self.balanced = Some(Balanced { how: Some(how), shares });
        likely
    }

    /// The request names its upstream, past the balancer.
    pub fn named(&mut self, upstreams: &UpstreamSet, endpoint: &Arc<Endpoint>) -> Arc<Endpoint> {
        let shares = upstreams.only(endpoint);
        self.balanced = Some(Balanced { how: None, shares });
        Arc::clone(endpoint)
    }

    /// Notes of one plugin, on a way that is decided so far.
    pub(crate) fn on_the_way(decisions: Decisions) -> Self {
        Self { decisions, ..Self::default() }
    }

    /// The effects, the external calls, the upstreams, and what was decided.
    pub(crate) fn into_parts(self) -> (Vec<String>, Vec<String>, Option<Balanced>, Decisions) {
        (self.effects, self.external, self.balanced, self.decisions)
    }
}

// === impl Decisions ===

impl Decisions {
    /// A way that begins with these decisions.
    pub(crate) fn given(given: Vec<bool>) -> Self {
        Self { given, taken: Vec::new() }
    }

    /// What was decided so far.
    pub(crate) fn taken(&self) -> &[Decision] {
        &self.taken
    }

    fn next(&self, percent: u8) -> bool {
        self.given.get(self.taken.len()).copied().unwrap_or(percent >= 50)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decisions, Notes};

    #[test]
    fn the_likelier_way_is_taken_unless_another_is_given() {
        for (given, percent, expected) in [
            (vec![], 30, false),
            (vec![], 50, true),
            (vec![true], 30, true),
            (vec![false], 100, true),
            (vec![true], 0, false),
        ] {
            let mut notes = Notes::on_the_way(Decisions::given(given.clone()));
            assert_eq!(notes.chance(percent, "it does", "it does not"), expected, "{given:?}");
        }
        let mut notes = Notes::on_the_way(Decisions::given(vec![true]));
        assert!(notes.chance(100, "a", "b") && notes.chance(10, "c", "d"));
        assert!(!notes.chance(10, "e", "f"), "what is given is used up");
        let (effects, .., decisions) = notes.into_parts();
        assert_eq!(effects, ["a", "10 % of requests: c", "90 % of requests: f"]);
        let told: Vec<_> = decisions.taken().iter().map(|d| (d.yes, d.percent)).collect();
        assert_eq!(told, [(true, 10.0), (false, 90.0)]);
    }
}
