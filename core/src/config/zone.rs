//! The time zone setting.

use std::fmt;
use std::str::FromStr;

use jiff::tz::{Offset, TimeZone};

/// A time zone as configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Zone {
    /// The system's, else UTC; looked up where it is used.
    #[default]
    System,
    /// A zone of the built-in database, by its name.
    Named(TimeZone),
    /// A fixed distance from UTC.
    Fixed(Offset),
}

/// A text that names no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time zone")]
pub struct NotAZone;

impl Zone {
    /// The zone to compute with. [`Zone::System`] reads `TZ` or `/etc/localtime`.
    pub fn time_zone(&self) -> TimeZone {
        match self {
            Self::System => TimeZone::try_system().unwrap_or(TimeZone::UTC),
            Self::Named(zone) => zone.clone(),
            Self::Fixed(offset) => offset.to_time_zone(),
        }
    }
}

impl FromStr for Zone {
    type Err = NotAZone;

    /// Takes `system`, names of the IANA database, `Z`, and offsets with or without `GMT`, `UTC`
    /// or `UT` in front: `GMT+8`, `UTC+08:00`, `-0330`, `+8`.
    fn from_str(text: &str) -> Result<Self, NotAZone> {
        if text.eq_ignore_ascii_case("system") {
            return Ok(Self::System);
        }
        if text.eq_ignore_ascii_case("z") {
            return Ok(Self::Fixed(Offset::UTC));
        }
        let bare = ["GMT", "UTC", "UT"]
            .iter()
            .find_map(|prefix| {
                text.strip_prefix(prefix).filter(|rest| rest.starts_with(['+', '-']))
            })
            .unwrap_or(text);
        if bare.starts_with(['+', '-']) {
            return offset(bare).map(Self::Fixed).ok_or(NotAZone);
        }
        TimeZone::get(text).map(Self::Named).map_err(|_| NotAZone)
    }
}

/// `+8`, `+08`, `+0830`, `+8:30` and the same with a minus; up to 18 hours, as Java has it.
fn offset(text: &str) -> Option<Offset> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = &text[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some(both) => both,
        None if digits.len() > 2 && digits.is_ascii() => digits.split_at(digits.len() - 2),
        None => (digits, "0"),
    };
    if !hours.bytes().chain(minutes.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 18 || minutes > 59 || hours == 18 && minutes > 0 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Named(zone) => f.write_str(zone.iana_name().unwrap_or("unnamed")),
            Self::Fixed(offset) => write!(f, "{offset}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Zone;

    #[test]
    fn names_and_offsets() {
        for (text, shown) in [
            ("Europe/Berlin", "Europe/Berlin"),
            ("Asia/Shanghai", "Asia/Shanghai"),
            ("GMT+8", "+08"),
            ("UTC+08:00", "+08"),
            ("-0330", "-03:30"),
            ("+8", "+08"),
            ("UTC", "UTC"),
            ("system", "system"),
        ] {
            let zone: Zone = text.parse().expect(text);
            assert_eq!(zone.to_string(), shown, "{text}");
        }
        for bad in ["Mars/Olympus", "GMT+", "+19", "+8:60", "+ab", "", "UTC+8x"] {
            assert!(bad.parse::<Zone>().is_err(), "{bad}");
        }
    }
}
