//! `shenyu.snapshot.*`: the last configuration in force, kept as a file.

use std::path::PathBuf;

use longmen_core::config::{KeySpec, Kind, Reader, Section};

/// Where the port stands in a path.
const PORT: &str = "{port}";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Snapshot",
    about: "What is in force is kept in a file that only its owner can read, at most once a second and at a stop. A gateway that \
            starts serves from it until an admin can be reached.",
    keys: &[
        KeySpec::new(
            "shenyu.snapshot.enabled",
            Kind::Bool,
            "true",
            "Whether the file is written, and read at the start.",
        ),
        KeySpec::new(
            "shenyu.snapshot.path",
            Kind::File,
            ".data/gateway-{port}.snapshot",
            "The file. `{port}` is the public port, so that gateways on one machine keep apart; none is kept where that is 0.",
        ),
    ],
};

/// The file of the last configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotConfig {
    /// Where it is; `None` where none is kept.
    pub path: Option<PathBuf>,
}

impl SnapshotConfig {
    pub(super) fn read(reader: &mut Reader<'_>, port: u16) -> Self {
        let enabled: bool = reader.get("shenyu.snapshot.enabled");
        let path: String = reader.get("shenyu.snapshot.path");
        let named = !path.contains(PORT) || port != 0;
        let path = (enabled && named).then(|| path.replace(PORT, &port.to_string()).into());
        Self { path }
    }
}
