//! `shenyu.register.*`, `shenyu.config.import.*` and other keys of single features.

use std::time::Duration;

use longmen_core::config::{BYTES, KeySpec, Kind, Reader, Section, SizeUnit, TimeUnit};
use longmen_core::setting_words;

const POSITIVE_SECONDS: Kind = Kind::Time { unit: TimeUnit::Seconds, min_ms: 1 };
const MANY_ADMINS: &str = "any number of admins may share one PostgreSQL database";
const JVM: &str = "a setting of Java's libraries";

/// How services register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterType {
    /// By calls to this admin.
    Http,
}

setting_words!(RegisterType { "http" => Self::Http });

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Registration, import and other features",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.register.registerType",
            Kind::Choice(RegisterType::WORDS),
            "http",
            "How services register.",
        ),
        KeySpec::new(
            "shenyu.register.props.checked",
            Kind::Bool,
            "true",
            "Whether registered addresses are probed before and after they are used.",
        ),
        KeySpec::new(
            "shenyu.register.props.scheduledTime",
            POSITIVE_SECONDS,
            "10",
            "The pause between two rounds of probes.",
        ),
        KeySpec::new(
            "shenyu.register.props.zombieCheckTimes",
            Kind::Int { min: 1, max: 10_000 },
            "5",
            "Failed probes, after the first, before an instance is removed.",
        ),
        KeySpec::new(
            "shenyu.register.props.zombieCheckThreads",
            Kind::Int { min: 1, max: 10_000 },
            "10",
            "Probes at the same time.",
        ),
        KeySpec::new(
            "shenyu.register.props.zombieRemovalTimes",
            POSITIVE_SECONDS,
            "60",
            "How long an instance that registered itself stays down before it is removed.",
        ),
        KeySpec::new(
            "shenyu.swagger.max-body-size",
            Kind::Size { unit: SizeUnit::Bytes, min: 1024 },
            "10MB",
            "The largest document of a service's API.",
        ),
        KeySpec::new(
            "shenyu.config.import.max-entry-size",
            BYTES,
            "104857600",
            "The largest unpacked file of an imported archive.",
        ),
        KeySpec::new(
            "shenyu.config.import.max-total-size",
            BYTES,
            "209715200",
            "The largest sum of its unpacked files.",
        ),
        KeySpec::new(
            "shenyu.config.import.max-entry-count",
            Kind::Int { min: 1, max: 1_000_000 },
            "1000",
            "The most files in it.",
        ),
        KeySpec::inert("shenyu.register.serverLists", "registration goes to this admin itself"),
        KeySpec::inert("shenyu.register.props.*", "left over in ShenYu"),
        KeySpec::inert("shenyu.cluster.*", MANY_ADMINS),
        KeySpec::pending("shenyu.k8s.scale.enabled", Kind::Bool, "scaling of gateways"),
        KeySpec::inert("shenyu.k8s.*", "scaling of gateways is not switched on"),
        KeySpec::pending("shenyu.alert.enabled", Kind::Bool, "alarms by mail"),
        KeySpec::inert("shenyu.alert.*", "alarms are not switched on"),
        KeySpec::inert("spring.mail.*", "alarms are not switched on"),
        KeySpec::inert("springdoc.*", "the API document is always served"),
        KeySpec::inert("management.*", "health and metrics are always there"),
        KeySpec::inert("eureka.*", JVM),
    ],
};

/// How services register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterConfig {
    /// The way.
    pub register_type: RegisterType,
    /// Whether registered addresses are probed.
    pub checked: bool,
    /// The pause between two rounds of probes.
    pub check_interval: Duration,
    /// Failed probes after which an address is given up.
    pub zombie_check_times: u32,
    /// Probes at the same time.
    pub zombie_check_threads: usize,
    /// How long a lost address is remembered.
    pub zombie_removal: Duration,
}

/// Bounds of an imported archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportConfig {
    /// The largest unpacked file, in bytes.
    pub max_entry_bytes: u64,
    /// The largest sum of unpacked files, in bytes.
    pub max_total_bytes: u64,
    /// The most files.
    pub max_entries: usize,
}

impl RegisterConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            register_type: reader.get("shenyu.register.registerType"),
            checked: reader.get("shenyu.register.props.checked"),
            check_interval: reader.get("shenyu.register.props.scheduledTime"),
            zombie_check_times: reader.get("shenyu.register.props.zombieCheckTimes"),
            zombie_check_threads: reader.get("shenyu.register.props.zombieCheckThreads"),
            zombie_removal: reader.get("shenyu.register.props.zombieRemovalTimes"),
        }
    }
}

impl ImportConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            max_entry_bytes: reader.get("shenyu.config.import.max-entry-size"),
            max_total_bytes: reader.get("shenyu.config.import.max-total-size"),
            max_entries: reader.get("shenyu.config.import.max-entry-count"),
        }
    }
}
