//! Settings of the sync.

/// The limit that the reference's server has when none is set, in bytes.
const UNSET_MESSAGE_BYTES: usize = 8192;

/// Settings of the sync with gateways.
#[derive(Clone)]
pub struct SyncSettings {
    /// Whether gateways can connect by websocket.
    pub websocket: bool,
    /// The largest message from a stock gateway, in bytes; 0 means the reference server's 8,192.
    pub message_max_size: usize,
    /// `Origin` headers that are let in, compared as a whole; `None` lets every handshake in, also
    /// one without the header.
    pub allow_origins: Option<Vec<String>>,
    /// Whether peers that are not loopback may connect without the sync token.
    pub allow_anonymous: bool,
    /// The sync token; made at the first start when absent.
    pub token: Option<String>,
}

impl Default for SyncSettings {
    fn default() -> Self {
        Self {
            websocket: true,
            message_max_size: 10_240,
            allow_origins: None,
            allow_anonymous: false,
            token: None,
        }
    }
}

impl SyncSettings {
    /// Reads `allowOrigins` as it stands in files: entries joined by `;`, blank ones dropped. A
    /// list without entries lets everything in, as an absent one.
    ///
    /// Source: ShenYu 2.7.1, `shenyu.sync.websocket.allowOrigins`.
    #[must_use]
    pub fn origins(list: &str) -> Option<Vec<String>> {
        let entries: Vec<String> =
            list.split(';').filter(|entry| !entry.trim().is_empty()).map(str::to_owned).collect();
        (!entries.is_empty()).then_some(entries)
    }

    /// The largest message from a stock gateway, in bytes.
    pub(super) const fn message_bytes(&self) -> usize {
        if self.message_max_size == 0 { UNSET_MESSAGE_BYTES } else { self.message_max_size }
    }
}

// By hand, so that the token reaches no log.
impl std::fmt::Debug for SyncSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SyncSettings")
            .field("websocket", &self.websocket)
            .field("message_max_size", &self.message_max_size)
            .field("allow_origins", &self.allow_origins)
            .field("allow_anonymous", &self.allow_anonymous)
            .finish_non_exhaustive()
    }
}
