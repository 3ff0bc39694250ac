//! Hashes of what is looked up in the index.
//!
//! Two keys with the same hash share a place; that costs a look at one candidate more and changes
//! no answer, so hashes need not resist anybody, and are the same in every process.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// The place of the root.
pub(super) const ROOT: u64 = 0x243f_6a88_85a3_08d3;

/// Marks that tell places apart that have the same path.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Mark {
    /// The place below, by any segment.
    Any = 0x1319_8a2e_0370_7344,
    /// What ends here.
    End = 0xa409_3822_299f_31d0,
    /// What goes on with a segment that begins in a certain way.
    Begins = 0x082e_fa98_ec4e_6c89,
    /// What goes on with anything, where nothing but texts led there.
    Under = 0xd131_0ba6_98df_b5ac,
    /// What goes on with anything that holds a certain text.
    Holds = 0xc97c_50dd_3f84_d5b5,
    /// How many beginnings there are, by their length.
    Length = 0x4528_21e6_38d0_1377,
}

pub(super) fn of(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(ROOT).build_hasher();
    hasher.write(bytes);
    // The fast hash leaves its last bits weak, and those are looked at first.
    fold(hasher.finish(), 0xbe54_66cf_34e9_0c6c)
}

/// The place reached from `place` by the segment with that hash.
pub(super) const fn below(place: u64, segment: u64) -> u64 {
    fold(place ^ segment, 0xc0ac_29b7_c97c_50dd)
}

/// The place with that mark at `place`.
pub(super) const fn marked(place: u64, mark: Mark) -> u64 {
    fold(place ^ mark as u64, 0x3f84_d5b5_b547_0917)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    product as u64 ^ (product >> 64) as u64
}
