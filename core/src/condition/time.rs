//! The one time format of conditions: `yyyy-MM-dd HH:mm:ss`.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// How the format is named to people.
pub(super) const TIME_FORMAT: &str = "yyyy-MM-dd HH:mm:ss";

/// Reads a date and time, exactly 19 characters.
pub(super) fn parse_civil(text: &str) -> Option<DateTime> {
    let bytes: &[u8; 19] = text.as_bytes().try_into().ok()?;
    let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, wanted)| bytes[at] != wanted) {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i16, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + i16::from(byte - b'0'))
        })
    };
    let small = |from: usize| number(from, from + 2).and_then(|value| i8::try_from(value).ok());
    DateTime::new(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?, 0).ok()
}

/// The instant that a local date and time names in `zone`. Inside a gap of the clock the later
/// reading counts, inside a repeated hour the first.
pub(super) fn instant(civil: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(civil).compatible().ok()
}
