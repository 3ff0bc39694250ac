//! `shenyu.accessLog.*`: the form and the place of the access log that `netty.http.accessLog`
//! switches on.

use std::path::PathBuf;

use longmen_core::config::logging::Format;
use longmen_core::config::{KeySpec, Kind, Reader, Section};
use longmen_core::telemetry::access_log::LineFormat;

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Access log",
    about: "One line for each request once it is over, refused ones and websockets included. \
            `shenyu.netty.http.accessLog` switches it on.",
    keys: &[
        KeySpec::new(
            "shenyu.accessLog.format",
            Kind::Choice(Format::WORDS),
            "",
            "Lines for people, or one JSON object a line.",
        )
        .computed("as `shenyu.logging.format`"),
        KeySpec::new("shenyu.accessLog.path", Kind::File, "", "The file that lines are added to.")
            .computed("standard output"),
        KeySpec::new(
            "shenyu.accessLog.queueSize",
            Kind::Int { min: 16, max: 1_000_000 },
            "4096",
            "Lines that may wait to be written, for each worker; past that they are dropped and counted.",
        ),
    ],
};

/// The access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLogConfig {
    /// The form of lines.
    pub format: LineFormat,
    /// The file; `None`: standard output.
    pub path: Option<PathBuf>,
    /// Lines that may wait, for each worker.
    pub queue_size: usize,
}

impl AccessLogConfig {
    /// `None` while it is switched off.
    pub(super) fn read(reader: &mut Reader<'_>, enabled: bool, logging: Format) -> Option<Self> {
        let format = match reader.optional("shenyu.accessLog.format").unwrap_or(logging) {
            Format::Text => LineFormat::Text,
            Format::Json => LineFormat::Json,
        };
        let config = Self {
            format,
            path: reader.optional("shenyu.accessLog.path"),
            queue_size: reader.get("shenyu.accessLog.queueSize"),
        };
        enabled.then_some(config)
    }
}
