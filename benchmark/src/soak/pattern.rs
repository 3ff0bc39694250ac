//! Bytes that tell their place: what is sent, and whether what came back is that.

use anyhow::ensure;
use bytes::Bytes;

/// Prime, so that a lost or doubled block of any usual size shows.
const PERIOD: usize = 251;

/// Bytes handed out at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// The endless pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Bytes);

impl Pattern {
    pub(super) fn new() -> Self {
        let bytes: Vec<u8> = (0..=250_u8).cycle().take(CHUNK + PERIOD).collect();
        Self(bytes.into())
    }

    /// The bytes from `offset` on, at most [`CHUNK`].
    pub(super) fn slice(&self, offset: u64, length: usize) -> Bytes {
        let from = usize::try_from(offset % PERIOD as u64).unwrap_or_default();
        self.0.slice(from..from + length.min(CHUNK))
    }

    /// # Errors
    /// When the bytes are not those of this place.
    pub(super) fn check(&self, mut offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        for part in bytes.chunks(CHUNK) {
            ensure!(self.slice(offset, part.len()) == part, "other bytes than sent near {offset}");
            offset += part.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn shifted_bytes_are_seen() {
        let pattern = Pattern::new();
        let bytes = pattern.slice(1000, 500);
        assert!(pattern.check(1000, &bytes).is_ok());
        assert!(pattern.check(1001, &bytes).is_err());
        assert!(pattern.check(1000 + 251, &bytes).is_ok(), "the pattern repeats");
    }
}
