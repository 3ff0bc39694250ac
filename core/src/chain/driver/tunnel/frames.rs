//! Follows websocket frames by their headers.
//!
//! Payload is never looked at, so masks and compression pass through; nothing is joined or split.
//!
//! Source: RFC 6455, section 5.2.

/// Bytes of the longest header that is read here; a mask counts as payload.
pub(super) const HEADER_MAX: usize = 10;

const OPCODE_CLOSE: u8 = 0x8;

/// Where one direction of a websocket stands.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Bytes of the current frame that are still to come.
    left: u64,
    /// The current frame is a close frame.
    closing: bool,
    /// A whole close frame has passed.
    closed: bool,
    /// Frames begun.
    pub(super) count: u64,
}

/// A frame is larger than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    /// Bytes before its header, which are fine.
    pub(super) before: usize,
    /// What its header announces.
    pub(super) payload: u64,
}

impl Frames {
    /// Goes over the bytes that follow those of the last call. Returns how many of them are whole
    /// headers and payload; the rest, less than [`HEADER_MAX`], is the beginning of a header and
    /// comes again with the next bytes.
    ///
    /// # Errors
    /// A header announces more payload than `limit` bytes. The frame is not entered.
    pub(super) fn advance(&mut self, bytes: &[u8], limit: u64) -> Result<usize, TooLarge> {
        let mut at = 0;
        loop {
            let rest = bytes.len() - at;
            if self.left > 0 {
                let step = usize::try_from(self.left).map_or(rest, |left| left.min(rest));
                self.left -= step as u64;
                at += step;
                if self.left > 0 {
                    return Ok(at);
                }
            }
            self.closed |= self.closing;
            let Some((header, payload)) = header(&bytes[at..]) else { return Ok(at) };
            if payload > limit {
                return Err(TooLarge { before: at, payload });
            }
            let mask = if bytes[at + 1] & 0x80 == 0 { 0 } else { 4 };
            self.closing = bytes[at] & 0x0f == OPCODE_CLOSE;
            self.count += 1;
            self.left = payload + mask;
            at += header;
        }
    }

    /// Whether a frame of our own may stand here.
    pub(super) const fn between(&self) -> bool {
        self.left == 0
    }

    /// Whether a whole close frame has passed.
    pub(super) const fn closed(&self) -> bool {
        self.closed
    }

    /// Enters a frame that was refused, so that its bytes can be skipped.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> usize {
        // Nothing is larger than this limit but a length that the protocol does not have.
        self.advance(bytes, u64::MAX >> 1).unwrap_or(bytes.len())
    }
}

/// Length of the header and of the payload; `None` while the header is incomplete.
fn header(bytes: &[u8]) -> Option<(usize, u64)> {
    let short = bytes.get(1)? & 0x7f;
    match short {
        126 => {
            let length = bytes.get(2..4)?.try_into().ok()?;
            Some((4, u64::from(u16::from_be_bytes(length))))
        }
        127 => {
            let length = bytes.get(2..10)?.try_into().ok()?;
            Some((10, u64::from_be_bytes(length)))
        }
        short => Some((2, u64::from(short))),
    }
}

/// The longest frame that [`close_frame`] makes.
const CLOSE_MAX: usize = 2 + 4 + 125;

/// A close frame, masked where a client sends it.
pub(super) fn close_frame(code: u16, reason: &str, mask: Option<[u8; 4]>) -> Box<[u8]> {
    let reason = &reason.as_bytes()[..reason.len().min(123)];
    let length = u8::try_from(2 + reason.len()).expect("at most 125");
    let mut frame = Vec::with_capacity(CLOSE_MAX);
    frame.push(0x80 | OPCODE_CLOSE);
    frame.push(length | if mask.is_some() { 0x80 } else { 0 });
    frame.extend(mask.into_iter().flatten());
    let key = mask.unwrap_or_default();
    let payload = code.to_be_bytes().into_iter().chain(reason.iter().copied());
    frame.extend(payload.zip(key.into_iter().cycle()).map(|(byte, key)| byte ^ key));
    frame.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frames, HEADER_MAX, TooLarge, close_frame};

    fn frame(opcode: u8, masked: bool, payload: usize) -> Vec<u8> {
        let bit = if masked { 0x80 } else { 0 };
        let mut bytes = vec![0x80 | opcode];
        match payload {
            0..126 => bytes.push(bit | u8::try_from(payload).unwrap()),
            126..65_536 => {
                bytes.push(bit | 126);
                bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(bit | 127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        if masked {
            bytes.extend([1, 2, 3, 4]);
        }
        // Looks like headers of close frames, for whoever loses count.
        bytes.extend(std::iter::repeat_n(0x88, payload));
        bytes
    }

    proptest! {
        /// However the bytes are cut: all pass in order, and each end of a frame is seen as one.
        #[test]
        fn cuts_do_not_matter(
            sizes in prop::collection::vec((0_usize..200, any::<bool>()), 1..6),
            large in prop::sample::select(vec![125_usize, 126, 127, 65_535, 65_536, 70_000]),
            cuts in prop::collection::vec(1_usize..300, 1..40),
        ) {
            let mut wire = Vec::new();
            let mut ends = Vec::new();
            for (size, masked) in sizes.iter().copied().chain([(large, true)]) {
                wire.extend(frame(1, masked, size));
                ends.push(wire.len());
            }
            let mut frames = Frames::default();
            let (mut passed, mut held) = (Vec::new(), Vec::new());
            let mut rest = &wire[..];
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let cut = (*cuts.next().unwrap()).min(rest.len());
                held.extend_from_slice(&rest[..cut]);
                rest = &rest[cut..];
                let pass = frames.advance(&held, 1 << 20).unwrap();
                passed.extend(held.drain(..pass));
                prop_assert!(held.len() < HEADER_MAX);
                prop_assert_eq!(frames.between(), ends.contains(&passed.len()) || passed.is_empty());
                prop_assert!(!frames.closed());
            }
            prop_assert_eq!(passed, wire);
            prop_assert_eq!(frames.count, ends.len() as u64);
        }
    }

    #[test]
    fn a_large_frame_is_refused_by_its_header() {
        let mut wire = frame(2, true, 100);
        let before = wire.len();
        wire.extend(&frame(2, true, 70_000)[..10]);
        let mut frames = Frames::default();
        let refused = frames.advance(&wire, 65_536).unwrap_err();
        assert_eq!(refused, TooLarge { before, payload: 70_000 });
        assert!(frames.between(), "a close frame may follow what was fine");
        let endless = [0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Frames::default().advance(&endless, 1).unwrap_err().payload, u64::MAX);
    }

    #[test]
    fn close_frames_are_made_and_seen() {
        let plain = close_frame(1001, "bye", None);
        assert_eq!(&*plain, b"\x88\x05\x03\xe9bye");
        let masked = close_frame(1001, "bye", Some([1, 2, 3, 4]));
        assert_eq!(&masked[..6], [0x88, 0x85, 1, 2, 3, 4]);
        assert_eq!(&masked[6..], [0x03 ^ 1, 0xe9 ^ 2, b'b' ^ 3, b'y' ^ 4, b'e' ^ 1]);
        for bytes in [&plain, &masked] {
            let mut frames = Frames::default();
            assert_eq!(frames.advance(&bytes[..4], 125), Ok(4));
            assert!(!frames.closed());
            assert_eq!(frames.advance(&bytes[4..], 125), Ok(bytes.len() - 4));
            assert!(frames.closed());
        }
    }
}
