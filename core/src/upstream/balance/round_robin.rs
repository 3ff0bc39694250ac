//! Smooth weighted round robin: the sequence is computed once, a choice is one addition.
//!
//! Source: ShenYu 2.7.1, roundRobin, vectors in the tests.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Eligible;

/// One period of choices. Weights are reduced by their common divisor; what would still be longer
/// than [`Sequence::MAX`] is scaled down, so that the table stays small.
#[derive(Debug, Default)]
pub(super) struct Sequence(Box<[u16]>);

impl Sequence {
    const MAX: u64 = 4096;

    pub(super) fn build(weights: &[u32]) -> Self {
        let divisor = weights.iter().fold(0_u64, |sum, weight| gcd(sum, u64::from(*weight))).max(1);
        let mut reduced: Vec<u64> = weights.iter().map(|w| u64::from(*w) / divisor).collect();
        let total: u64 = reduced.iter().sum();
        if total > Self::MAX {
            // Rounded up: the smallest share stays at least one in a period.
            reduced = reduced.iter().map(|w| (w * Self::MAX).div_ceil(total)).collect();
        }
        let total: u64 = reduced.iter().sum();
        let mut current = vec![0_i64; reduced.len()];
        let mut sequence = Vec::with_capacity(usize::try_from(total).unwrap_or_default());
        for _ in 0..total {
            let mut best = 0;
            for (index, weight) in reduced.iter().enumerate() {
                current[index] += i64::try_from(*weight).unwrap_or(i64::MAX);
                if current[index] > current[best] {
                    best = index;
                }
            }
            current[best] -= i64::try_from(total).unwrap_or(i64::MAX);
            sequence.push(u16::try_from(best).unwrap_or(u16::MAX));
        }
        Self(sequence.into_boxed_slice())
    }

    /// The next in turn.
    pub(super) fn next(&self, position: &AtomicUsize) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        let at = position.fetch_add(1, Ordering::Relaxed) % self.0.len();
        usize::from(self.0[at])
    }

    /// What [`next`](Self::next) would say.
    pub(super) fn peek(&self, position: &AtomicUsize) -> Option<usize> {
        let at = position.load(Ordering::Relaxed).checked_rem(self.0.len())?;
        self.0.get(at).map(|index| usize::from(*index))
    }

    /// The next in turn that is eligible, `first` being the turn that was taken already; one that is
    /// warming up lets most of its turns pass. The turns of the others are taken in their order, so
    /// none inherits what another does not take.
    pub(super) fn among(
        &self,
        position: &AtomicUsize,
        eligible: &Eligible<'_>,
        first: Option<usize>,
    ) -> Option<usize> {
        let share = |weight: u32, full: u32| f64::from(weight) / f64::from(full.max(1));
        let (mut fallback, mut most) = (None, 0.0);
        for (index, member, weight) in eligible.iter() {
            let grown = share(weight, member.weight);
            if grown > most {
                (fallback, most) = (Some(index), grown);
            }
        }
        // Other workers move on meanwhile: some turns of a round may be theirs.
        let turns = std::iter::repeat_with(|| self.next(position)).take(4 * self.0.len());
        for index in first.into_iter().chain(turns) {
            let Some((member, weight)) = eligible.get(index) else { continue };
            if member.endpoint.take_turn(share(weight, member.weight) / most) {
                return Some(index);
            }
        }
        fallback
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::Sequence;

    fn letters(weights: &[u32], count: usize) -> String {
        let sequence = Sequence::build(weights);
        let position = AtomicUsize::new(0);
        (0..count)
            .map(|_| char::from(b'A' + u8::try_from(sequence.next(&position)).unwrap()))
            .collect()
    }

    #[test]
    fn vectors_of_the_reference() {
        assert_eq!(letters(&[5, 1, 1], 14), "AABACAAAABACAA");
        assert_eq!(letters(&[1, 2, 3], 6), "CBACBC");
        assert_eq!(letters(&[3, 3, 2], 8), "ABCABCAB");
        assert_eq!(letters(&[50, 50], 4), "ABAB");
    }

    #[test]
    fn huge_weights_keep_a_small_table_and_every_member_its_turn() {
        let sequence = Sequence::build(&[1, 999_983, 500_000]);
        assert!(sequence.0.len() < 4200);
        assert!(sequence.0.contains(&0));
    }
}
