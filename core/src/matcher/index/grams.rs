//! Which short texts are looked for anywhere in a path.

use super::hash;
use super::keys::{HELD, Held};

/// The words of the filter.
const WORDS: usize = 1_024;

/// The texts that are looked for from one place on.
#[derive(Debug, Clone)]
pub(super) struct Grams {
    /// How many there are, by their length.
    counts: [u32; HELD.len()],
    /// A bit for each, by its hash. Bits of texts that are gone stay, and cost a look.
    filter: Box<[u64; WORDS]>,
}

impl Grams {
    pub(super) fn new() -> Self {
        Self { counts: [0; HELD.len()], filter: Box::new([0; WORDS]) }
    }

    pub(super) fn add(&mut self, held: Held, text: u64) {
        self.counts[held] += 1;
        let (word, bit) = place(text);
        self.filter[word] |= bit;
    }

    /// Says whether none is left.
    pub(super) fn remove(&mut self, held: Held) -> bool {
        self.counts[held] -= 1;
        self.counts == [0; HELD.len()]
    }

    /// Hands over the hashes of texts in `path` that are looked for, perhaps also others. Of those of
    /// one length none is handed over twice.
    pub(super) fn of(&self, path: &[u8], mut each: impl FnMut(u64)) {
        for (length, _) in HELD.iter().zip(self.counts).filter(|(_, count)| *count > 0) {
            let mut seen: smallvec::SmallVec<[u64; 16]> = smallvec::SmallVec::new();
            for window in path.windows(*length) {
                let text = hash::of(window);
                let (word, bit) = place(text);
                if self.filter[word] & bit != 0 {
                    seen.push(text);
                }
            }
            seen.sort_unstable();
            seen.dedup();
            seen.into_iter().for_each(&mut each);
        }
    }
}

const fn place(text: u64) -> (usize, u64) {
    ((text >> 32) as usize % WORDS, 1 << (text & 63))
}
