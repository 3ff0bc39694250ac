//! Weighted random choice.

use rand::Rng;

use super::Eligible;

/// The choice among those that are eligible now, by the weights they have now.
///
/// What the table drew is taken with the part of its weight that it has now; else one is drawn of
/// the weights as they are. Both together give each its exact share.
pub(super) fn among(eligible: &Eligible<'_>, first: Option<usize>) -> Option<usize> {
    if let Some(index) = first
        && let Some((member, weight)) = eligible.get(index)
        && rand::rng().random_range(0..member.weight.max(1)) < weight
    {
        return first;
    }
    let total: u64 = eligible.iter().map(|(.., weight)| u64::from(weight)).sum();
    let mut drawn = rand::rng().random_range(0..total.max(1));
    let mut last = None;
    for (index, _, weight) in eligible.iter() {
        if drawn < u64::from(weight) {
            return Some(index);
        }
        drawn -= u64::from(weight);
        last = Some(index);
    }
    // Weights may have grown between the two walks.
    last
}

/// Cumulative weights.
#[derive(Debug, Default)]
pub(super) struct Cumulative(Vec<u64>);

impl Cumulative {
    pub(super) fn build(weights: &[u32]) -> Self {
        let mut total = 0_u64;
        Self(
            weights
                .iter()
                .map(|weight| {
                    total += u64::from(*weight);
                    total
                })
                .collect(),
        )
    }

    pub(super) fn choose(&self) -> usize {
        self.at(|total| rand::rng().random_range(0..total))
    }

    fn at(&self, draw: impl FnOnce(u64) -> u64) -> usize {
        let total = self.0.last().copied().unwrap_or(0);
        if total == 0 {
            return 0;
        }
        let drawn = draw(total);
        self.0.partition_point(|upper| *upper <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::Cumulative;

    #[test]
    fn every_draw_falls_into_the_share_of_its_weight() {
        let table = Cumulative::build(&[1, 0, 3]);
        let chosen: Vec<usize> = (0..4).map(|draw| table.at(|_| draw)).collect();
        assert_eq!(chosen, [0, 2, 2, 2]);
    }
}
