//! Weighted random choice.

use rand::Rng;

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
