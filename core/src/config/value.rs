//! Kinds of values, and how their text becomes a Rust value.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use super::cidr::Cidr;
use super::key::uniform;
use super::zone::Zone;

/// The unit of a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

/// The unit of a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// 1,024 bytes.
    Kibi,
    /// 1,048,576 bytes.
    Mebi,
}

/// What values a key takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`; `yes`, `no`, `on`, `off` too, as YAML 1.1 has them.
    Bool,
    /// A whole number within limits.
    Int {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// Any text.
    Text,
    /// Any text, never shown.
    Secret,
    /// A URL that may carry a password, never shown.
    SecretUrl,
    /// One of several words, in any spelling that relaxed names allow.
    Choice(&'static [&'static str]),
    /// A number of bytes: a plain number of `unit`, or a number with `B`, `KB`, `MB`, `GB`, `TB`.
    Size {
        /// What a plain number counts.
        unit: SizeUnit,
        /// The least, in bytes.
        min: u64,
    },
    /// A length of time: a plain number of `unit`, a number with `ms`, `s`, `m`, `h`, `d`, or
    /// ISO 8601 such as `PT10S`.
    Time {
        /// What a plain number counts.
        unit: TimeUnit,
        /// The least, in milliseconds.
        min_ms: u64,
    },
    /// A TCP port; 0 for any free one.
    Port,
    /// An IP address to listen on; `localhost` too.
    Address,
    /// A URL with one of these schemes.
    Url(&'static [&'static str]),
    /// An IP network such as `10.0.0.0/8`, or one address.
    Network,
    /// A time zone.
    Zone,
    /// A log level.
    Level,
    /// A path of a file or folder.
    File,
    /// A regular expression.
    Pattern,
    /// A SHA-512 hash as 128 hexadecimal digits.
    Sha512,
    /// Several values: a YAML list, indexed keys, or one text with commas (or semicolons).
    List(&'static Kind),
    /// Whatever stands there; for keys that nobody reads.
    Any,
}

/// Any time-out or interval in milliseconds, zero included.
pub const MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 0 };
/// Any time-out or interval in seconds, zero included.
pub const SECONDS: Kind = Kind::Time { unit: TimeUnit::Seconds, min_ms: 0 };
/// Any number of bytes.
pub const BYTES: Kind = Kind::Size { unit: SizeUnit::Bytes, min: 0 };
/// A count that fits 32 bits.
pub const COUNT: Kind = Kind::Int { min: 0, max: i32::MAX as i64 };
/// A list of texts.
pub const TEXTS: Kind = Kind::List(&Kind::Text);

impl Kind {
    /// Says what is expected, to follow the word "expected".
    pub fn expectation(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Text | Self::Secret | Self::Any => "a text".to_owned(),
            Self::SecretUrl => "a URL".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Size { unit, min } => {
                let plain = match unit {
                    SizeUnit::Bytes => "bytes",
                    SizeUnit::Kibi => "KB",
                    SizeUnit::Mebi => "MB",
                };
                let at_least = least(*min, " bytes");
                format!("a number of {plain}, or a size such as 512KB or 2MB{at_least}")
            }
            Self::Time { unit, min_ms } => {
                let plain = match unit {
                    TimeUnit::Millis => "milliseconds",
                    TimeUnit::Seconds => "seconds",
                };
                let at_least = least(*min_ms, " ms");
                format!("a number of {plain}, or a time such as 500ms or 10s{at_least}")
            }
            Self::Port => "a port from 0 to 65535".to_owned(),
            Self::Address => "an IP address to listen on, such as 0.0.0.0 or 127.0.0.1".to_owned(),
            Self::Url(schemes) => format!("a URL that begins with {}", schemes.join(" or ")),
            Self::Network => "an IP network such as 10.0.0.0/8, or an IP address".to_owned(),
            Self::Zone => "a time zone such as Europe/Berlin, GMT+8 or +08:00".to_owned(),
            Self::Level => "one of trace, debug, info, warn, error, off".to_owned(),
            Self::File => "a path".to_owned(),
            Self::Pattern => "a regular expression".to_owned(),
            Self::Sha512 => "a SHA-512 hash of 128 hexadecimal digits".to_owned(),
            Self::List(item) => format!("a list, each item {}", item.expectation()),
        }
    }

    /// Names the type for the table of the docs.
    pub fn label(&self) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int { .. } => "integer".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Secret => "secret".to_owned(),
            Self::SecretUrl => "secret URL".to_owned(),
            Self::Choice(words) => words.join(" / "),
            Self::Size { unit: SizeUnit::Bytes, .. } => "size, bytes".to_owned(),
            Self::Size { unit: SizeUnit::Kibi, .. } => "size, KB".to_owned(),
            Self::Size { unit: SizeUnit::Mebi, .. } => "size, MB".to_owned(),
            Self::Time { unit: TimeUnit::Millis, .. } => "time, ms".to_owned(),
            Self::Time { unit: TimeUnit::Seconds, .. } => "time, s".to_owned(),
            Self::Port => "port".to_owned(),
            Self::Address => "IP address".to_owned(),
            Self::Url(_) => "URL".to_owned(),
            Self::Network => "IP network".to_owned(),
            Self::Zone => "time zone".to_owned(),
            Self::Level => "log level".to_owned(),
            Self::File => "path".to_owned(),
            Self::Pattern => "regex".to_owned(),
            Self::Sha512 => "SHA-512 hex".to_owned(),
            Self::List(item) => format!("list of {}", item.label()),
            Self::Any => "any".to_owned(),
        }
    }
}

fn least(min: u64, unit: &str) -> String {
    if min == 0 { String::new() } else { format!(", at least {min}{unit}") }
}

/// A text that does not fit its kind; the reader says what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit;

/// A Rust value that a setting's text can become.
pub trait FromSetting: Sized {
    /// Reads `text`, which is not blank, as a value of `kind`.
    ///
    /// # Errors
    /// [`Unfit`] where the text is not one of that kind or out of its limits.
    fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit>;
}

impl FromSetting for bool {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(Unfit),
        }
    }
}

impl FromSetting for String {
    fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit> {
        match kind {
            Kind::Choice(words) => choice(words, text).map(str::to_owned),
            Kind::Url(schemes) => {
                let text = text.trim();
                let known = schemes.iter().any(|scheme| {
                    text.strip_prefix(scheme).is_some_and(|rest| {
                        !rest.is_empty() && !rest.starts_with('/') && !rest.contains(' ')
                    })
                });
                if known { Ok(text.to_owned()) } else { Err(Unfit) }
            }
            Kind::Sha512 => {
                let text = text.trim();
                let fits = text.len() == 128 && text.bytes().all(|b| b.is_ascii_hexdigit());
                if fits { Ok(text.to_ascii_lowercase()) } else { Err(Unfit) }
            }
            Kind::Pattern => match regex::Regex::new(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(_) => Err(Unfit),
            },
            _ => Ok(text.to_owned()),
        }
    }
}

/// The word of `words` that `text` means, compared by relaxed names.
pub(super) fn choice(words: &[&'static str], text: &str) -> Result<&'static str, Unfit> {
    let wanted = uniform(text);
    words.iter().copied().find(|word| uniform(word) == wanted).ok_or(Unfit)
}

impl FromSetting for u64 {
    fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit> {
        match kind {
            Kind::Size { unit, min } => match size(text.trim(), *unit) {
                Some(bytes) if bytes >= *min => Ok(bytes),
                _ => Err(Unfit),
            },
            _ => Self::try_from(integer(kind, text)?).map_err(|_| Unfit),
        }
    }
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl FromSetting for $int {
            fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit> {
                Self::try_from(integer(kind, text)?).map_err(|_| Unfit)
            }
        }
    )*};
}
integers!(u8, u16, u32, i32, i64);

impl FromSetting for usize {
    fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit> {
        u64::from_setting(kind, text).and_then(|n| Self::try_from(n).map_err(|_| Unfit))
    }
}

/// A whole number as YAML 1.1 writes it: underscores between digits, `1.0` is none.
fn integer(kind: &Kind, text: &str) -> Result<i64, Unfit> {
    let digits = text.trim().replace('_', "");
    let number: i64 = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).map_err(|_| Unfit)?,
        None => digits.parse().map_err(|_| Unfit)?,
    };
    let (min, max) = match kind {
        Kind::Int { min, max } => (*min, *max),
        Kind::Port => (0, 65_535),
        _ => (i64::MIN, i64::MAX),
    };
    if (min..=max).contains(&number) { Ok(number) } else { Err(Unfit) }
}

/// Splits a number from the unit behind it; `None` where there is no number.
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

fn size(text: &str, unit: SizeUnit) -> Option<u64> {
    let (number, written) = number_and_unit(text)?;
    let plain = match unit {
        SizeUnit::Bytes => 0,
        SizeUnit::Kibi => 10,
        SizeUnit::Mebi => 20,
    };
    let shift = match written.to_ascii_uppercase().as_str() {
        "" => plain,
        "B" => 0,
        "KB" | "K" => 10,
        "MB" | "M" => 20,
        "GB" | "G" => 30,
        "TB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

impl FromSetting for Duration {
    fn from_setting(kind: &Kind, text: &str) -> Result<Self, Unfit> {
        let (unit, min_ms) = match kind {
            Kind::Time { unit, min_ms } => (*unit, *min_ms),
            _ => (TimeUnit::Millis, 0),
        };
        match time(text.trim(), unit) {
            Some(time) if time.as_millis() >= u128::from(min_ms) => Ok(time),
            _ => Err(Unfit),
        }
    }
}

fn time(text: &str, unit: TimeUnit) -> Option<Duration> {
    let upper = text.to_ascii_uppercase();
    if let Some(iso) = upper.strip_prefix('P') {
        return iso_time(iso);
    }
    let (number, written) = number_and_unit(text)?;
    let seconds = |per: u64| number.checked_mul(per).map(Duration::from_secs);
    match (written.to_ascii_lowercase().as_str(), unit) {
        ("", TimeUnit::Millis) | ("ms", _) => Some(Duration::from_millis(number)),
        ("", TimeUnit::Seconds) | ("s", _) => seconds(1),
        ("ns", _) => Some(Duration::from_nanos(number)),
        ("us", _) => Some(Duration::from_micros(number)),
        ("m", _) => seconds(60),
        ("h", _) => seconds(3600),
        ("d", _) => seconds(86_400),
        _ => None,
    }
}

/// `1DT2H3M4S` without the leading `P`: whole numbers, days to seconds.
fn iso_time(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    let mut in_time = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_time, rest) = (true, after);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..end].parse().ok()?;
        let per = match (rest.as_bytes()[end], in_time) {
            (b'D', false) => 86_400,
            (b'H', true) => 3600,
            (b'M', true) => 60,
            (b'S', true) => 1,
            _ => return None,
        };
        total = total.checked_add(Duration::from_secs(number.checked_mul(per)?))?;
        rest = &rest[end + 1..];
    }
    if text.is_empty() { None } else { Some(total) }
}

impl FromSetting for IpAddr {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        match text.trim() {
            "localhost" => Ok(Self::V4(Ipv4Addr::LOCALHOST)),
            "*" => Ok(Self::V4(Ipv4Addr::UNSPECIFIED)),
            text => text.trim_matches(['[', ']']).parse().map_err(|_| Unfit),
        }
    }
}

impl FromSetting for Cidr {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        text.trim().parse().map_err(|_| Unfit)
    }
}

impl FromSetting for Zone {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        text.trim().parse().map_err(|_| Unfit)
    }
}

impl FromSetting for PathBuf {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        let text = text.trim();
        Ok(Self::from(text.strip_prefix("file:").unwrap_or(text)))
    }
}

/// A value that `Debug` does not show and that has no `Display`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl FromSetting for Secret {
    fn from_setting(_: &Kind, text: &str) -> Result<Self, Unfit> {
        Ok(Self(text.to_owned()))
    }
}

/// Declares an enum that settings name by words: `word => Variant` lines, aliases included.
#[macro_export]
macro_rules! setting_words {
    ($type:ty { $($word:literal => $value:expr),+ $(,)? }) => {
        impl $type {
            /// The words that settings may use.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }
        impl $crate::config::FromSetting for $type {
            fn from_setting(
                _: &$crate::config::Kind,
                text: &str,
            ) -> Result<Self, $crate::config::Unfit> {
                let wanted = $crate::config::uniform(text);
                $(if $crate::config::uniform($word) == wanted { return Ok($value); })+
                Err($crate::config::Unfit)
            }
        }
    };
}
