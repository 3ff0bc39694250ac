//! What a route answered when: which answers are right depends on the moment.
//!
//! A state of a route may be in force from the moment its edit was sent to the admin, and no longer
//! once every gateway is known to have the version of a later one. An answer is right if it belongs
//! to a state that may have been in force at any moment between the request and its answer.

use std::time::Instant;

/// What a route does with requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// Which of its two paths it takes.
    pub(super) path: usize,
    /// Whether it is switched on.
    pub(super) enabled: bool,
    /// The upstreams that may answer.
    pub(super) upstreams: Vec<usize>,
}

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    /// This upstream.
    Upstream(usize),
    /// The gateway: no route takes the request.
    Gateway,
}

/// What an answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Right for a state that may have been in force.
    Right,
    /// Right only for a state that was over before the request was sent.
    Stale,
    /// Right for no state there ever was.
    Wrong,
}

/// All states of one route, the oldest first.
#[derive(Debug)]
pub(super) struct Timeline(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    state: State,
    sent: Instant,
    /// When the admin's answer to the edit was read.
    answered: Option<Instant>,
    /// A version of the configuration that contains the edit.
    version: Option<u64>,
    /// When every gateway was known to have a later state.
    over: Option<Instant>,
}

impl State {
    fn answers(&self, path: usize, answered: Answered) -> bool {
        match answered {
            Answered::Upstream(number) => {
                self.enabled && self.path == path && self.upstreams.contains(&number)
            }
            Answered::Gateway => !self.enabled || self.path != path,
        }
    }
}

impl Timeline {
    /// A route that has been in this state, and in force, since before the first request.
    pub(super) fn new(state: State, now: Instant) -> Self {
        Self(vec![Entry { state, sent: now, answered: Some(now), version: Some(0), over: None }])
    }

    /// The state of the last edit.
    pub(super) fn last(&self) -> &State {
        &self.0[self.0.len() - 1].state
    }

    /// An edit is about to be sent.
    pub(super) fn send(&mut self, state: State, now: Instant) {
        self.0.push(Entry { state, sent: now, answered: None, version: None, over: None });
    }

    /// The admin has confirmed the last edit.
    pub(super) fn confirm(&mut self, now: Instant) {
        if let Some(entry) = self.0.last_mut() {
            entry.answered = Some(now);
        }
    }

    /// The admin was asked at `asked` and said that its version is `current`: edits confirmed before
    /// are part of it.
    pub(super) fn stored(&mut self, current: u64, asked: Instant) {
        // An earlier edit of the route is part of whatever a later one is part of.
        for entry in self.0.iter_mut().rev().take_while(|entry| entry.version.is_none()) {
            if entry.answered.is_some_and(|answered| answered < asked) {
                entry.version = Some(current);
            }
        }
    }

    /// Every gateway has had at least this version at `now`. Gives for each edit that is newly known to
    /// be in force the time since it was confirmed.
    pub(super) fn reached(&mut self, version: u64, now: Instant) -> Vec<std::time::Duration> {
        let reached = |entry: &Entry| entry.version.is_some_and(|at| at <= version);
        let Some(latest) = self.0.iter().rposition(reached) else { return Vec::new() };
        let mut times = Vec::new();
        for index in (0..latest).rev() {
            if self.0[index].over.is_some() {
                break;
            }
            self.0[index].over = Some(now);
            let confirmed = self.0[index + 1].answered;
            times.extend(confirmed.map(|confirmed| now.saturating_duration_since(confirmed)));
        }
        times
    }

    /// Whether the last state is the only one that may be in force.
    pub(super) fn settled(&self) -> bool {
        self.0.iter().rev().skip(1).all(|entry| entry.over.is_some())
    }

    /// Judges an answer to a request on one of the route's paths.
    pub(super) fn judge(
        &self,
        path: usize,
        answered: Answered,
        sent: Instant,
        received: Instant,
    ) -> Verdict {
        let mut stale = false;
        for entry in self.0.iter().rev() {
            let over = entry.over.is_some_and(|over| over < sent);
            if entry.sent <= received && entry.state.answers(path, answered) {
                if !over {
                    return Verdict::Right;
                }
                stale = true;
            }
        }
        if stale { Verdict::Stale } else { Verdict::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn state(path: usize, upstreams: &[usize]) -> State {
        State { path, enabled: true, upstreams: upstreams.to_vec() }
    }

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn both_states_are_right_until_the_new_one_is_known_to_be_in_force() {
        let start = Instant::now();
        let mut line = Timeline::new(state(0, &[1]), start);
        let (old, new) = (Answered::Upstream(1), Answered::Upstream(2));
        assert_eq!(line.judge(0, new, at(start, 1), at(start, 2)), Verdict::Wrong);
        line.send(state(0, &[2]), at(start, 10));
        // In force at once, though the admin has not answered yet.
        assert_eq!(line.judge(0, new, at(start, 9), at(start, 11)), Verdict::Right);
        assert_eq!(line.judge(0, new, at(start, 8), at(start, 9)), Verdict::Wrong);
        assert_eq!(line.judge(0, old, at(start, 12), at(start, 13)), Verdict::Right);
        line.confirm(at(start, 20));
        // Asked before it was confirmed: that version may be without it.
        line.stored(7, at(start, 19));
        assert!(line.reached(7, at(start, 22)).is_empty());
        line.stored(8, at(start, 23));
        assert!(line.reached(7, at(start, 24)).is_empty());
        assert!(!line.settled());
        assert_eq!(line.reached(8, at(start, 30)), [Duration::from_millis(10)]);
        assert!(line.settled());
        assert_eq!(line.judge(0, old, at(start, 30), at(start, 40)), Verdict::Right);
        assert_eq!(line.judge(0, old, at(start, 31), at(start, 40)), Verdict::Stale);
        assert_eq!(line.judge(0, new, at(start, 31), at(start, 40)), Verdict::Right);
    }

    #[test]
    fn no_answer_of_an_upstream_is_right_where_there_is_no_route() {
        let start = Instant::now();
        let mut line = Timeline::new(state(0, &[1]), start);
        assert_eq!(line.judge(1, Answered::Gateway, start, start), Verdict::Right);
        assert_eq!(line.judge(0, Answered::Gateway, start, start), Verdict::Wrong);
        line.send(State { enabled: false, ..state(0, &[1]) }, at(start, 1));
        assert_eq!(line.judge(0, Answered::Gateway, at(start, 1), at(start, 2)), Verdict::Right);
        assert_eq!(
            line.judge(1, Answered::Upstream(1), at(start, 1), at(start, 2)),
            Verdict::Wrong
        );
    }

    #[test]
    fn several_edits_can_be_on_their_way() {
        let start = Instant::now();
        let mut line = Timeline::new(state(0, &[1]), start);
        for (number, upstream) in (1..=3).zip([2, 3, 4]) {
            line.send(state(0, &[upstream]), at(start, number * 10));
            line.confirm(at(start, number * 10 + 1));
        }
        // One look for all of them: a later version is as good.
        line.stored(9, at(start, 40));
        assert_eq!(line.reached(9, at(start, 41)).len(), 3);
        for stale in 1..=3 {
            let answered = Answered::Upstream(stale);
            assert_eq!(line.judge(0, answered, at(start, 42), at(start, 43)), Verdict::Stale);
        }
        assert_eq!(
            line.judge(0, Answered::Upstream(4), at(start, 42), at(start, 43)),
            Verdict::Right
        );
    }
}
