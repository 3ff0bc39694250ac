//! The filters in front of the plugins: CORS, file size, excluded, fallback and health paths.

use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, Notice, Reader, SECONDS, Section, SizeUnit, TEXTS};

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Filters in front of the plugins",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.cross.enabled",
            Kind::Bool,
            "false",
            "Whether requests of other origins (CORS) are answered here.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedAnyOrigin",
            Kind::Bool,
            "false",
            "Whether every origin is allowed.",
        ),
        KeySpec::new(
            "shenyu.cross.allowCredentials",
            Kind::Bool,
            "false",
            "Whether credentials are allowed.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedHeaders",
            TEXTS,
            "",
            "Headers allowed besides those that ShenYu always allows.",
        ),
        KeySpec::new("shenyu.cross.allowedMethods", TEXTS, "*", "Methods allowed."),
        KeySpec::new("shenyu.cross.allowedExpose", TEXTS, "", "Headers that a page may read."),
        KeySpec::new(
            "shenyu.cross.maxAge",
            SECONDS,
            "18000",
            "How long a browser may remember the answer.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedOrigin.spacer",
            Kind::Text,
            ".",
            "What stands between a prefix and the domain.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedOrigin.domain",
            Kind::Text,
            "",
            "The domain of allowed origins.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedOrigin.prefixes",
            TEXTS,
            "",
            "Prefixes of the domain that are allowed.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedOrigin.origins",
            TEXTS,
            "",
            "Whole origins that are allowed, with or without scheme; `*` for all.",
        ),
        KeySpec::new(
            "shenyu.cross.allowedOrigin.originRegex",
            Kind::Pattern,
            "",
            "A pattern that a whole allowed origin matches.",
        ),
        KeySpec::new(
            "shenyu.file.enabled",
            Kind::Bool,
            "false",
            "Whether multipart bodies are limited.",
        ),
        KeySpec::new(
            "shenyu.file.maxSize",
            Kind::Size { unit: SizeUnit::Mebi, min: 1 },
            "10",
            "The largest multipart body.",
        ),
        KeySpec::new(
            "shenyu.exclude.enabled",
            Kind::Bool,
            "false",
            "Whether some paths are answered 200 with an empty body.",
        ),
        KeySpec::new("shenyu.exclude.paths", TEXTS, "", "Those paths, compared whole."),
        KeySpec::new(
            "shenyu.fallback.enabled",
            Kind::Bool,
            "false",
            "Whether some paths are answered by the built-in fallback endpoints.",
        ),
        KeySpec::new("shenyu.fallback.paths", TEXTS, "", "Those paths, compared whole."),
        KeySpec::new(
            "shenyu.health.enabled",
            Kind::Bool,
            "true",
            "Whether health paths are answered here and never reach a plugin.",
        ),
        KeySpec::new(
            "shenyu.health.paths",
            TEXTS,
            "/actuator, /health_check",
            "The beginnings of health paths.",
        ),
        KeySpec::new(
            "shenyu.switchConfig.collapseSlashes",
            Kind::Bool,
            "false",
            "Whether runs of `/` in a path become one; the query stays.",
        ),
        KeySpec::inert("shenyu.switchConfig.local", "left over in ShenYu"),
        KeySpec::pending(
            "shenyu.duplicateResponseHeader.strategy",
            Kind::Text,
            "headers that upstream and gateway both set",
        ),
        KeySpec::pending(
            "shenyu.duplicateResponseHeader.headers",
            TEXTS,
            "headers that upstream and gateway both set",
        ),
    ],
};

/// The filters in front of the plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiltersConfig {
    /// CORS; `None`: requests of other origins are ordinary.
    pub cross: Option<CrossConfig>,
    /// The largest multipart body in bytes; `None`: no limit of its own.
    pub file_max_bytes: Option<u64>,
    /// Paths answered 200 with an empty body; empty while switched off.
    pub exclude_paths: Vec<String>,
    /// Paths answered by the fallback endpoints; empty while switched off.
    pub fallback_paths: Vec<String>,
    /// The beginnings of health paths; empty while switched off.
    pub health_paths: Vec<String>,
    /// Whether runs of `/` become one.
    pub collapse_slashes: bool,
}

/// CORS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossConfig {
    /// Whether every origin is allowed.
    pub any_origin: bool,
    /// Whether credentials are allowed.
    pub credentials: bool,
    /// Headers allowed besides those that are always allowed.
    pub headers: Vec<String>,
    /// Methods allowed; `*` for all.
    pub methods: Vec<String>,
    /// Headers that a page may read.
    pub expose: Vec<String>,
    /// How long a browser may remember the answer.
    pub max_age: Duration,
    /// What stands between a prefix and the domain.
    pub origin_spacer: String,
    /// The domain of allowed origins.
    pub origin_domain: Option<String>,
    /// Prefixes of the domain.
    pub origin_prefixes: Vec<String>,
    /// Whole origins, with or without scheme.
    pub origins: Vec<String>,
    /// A pattern that a whole allowed origin matches.
    pub origin_pattern: Option<String>,
}

impl FiltersConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let file: bool = reader.get("shenyu.file.enabled");
        let file_max_bytes = reader.get("shenyu.file.maxSize");
        Self {
            cross: CrossConfig::read(reader),
            file_max_bytes: file.then_some(file_max_bytes),
            exclude_paths: paths(reader, "shenyu.exclude.enabled", "shenyu.exclude.paths"),
            fallback_paths: paths(reader, "shenyu.fallback.enabled", "shenyu.fallback.paths"),
            health_paths: paths(reader, "shenyu.health.enabled", "shenyu.health.paths"),
            collapse_slashes: reader.get("shenyu.switchConfig.collapseSlashes"),
        }
    }
}

/// The paths of a switched list; each must begin with a slash.
fn paths(reader: &mut Reader<'_>, switch: &'static str, list: &'static str) -> Vec<String> {
    let enabled: bool = reader.get(switch);
    let paths: Vec<String> = reader.list(list);
    for (index, bad) in paths.iter().enumerate().filter(|(_, path)| !path.starts_with('/')) {
        let message = format!("expected a path that begins with /, found \"{bad}\"");
        reader.reject_item(list, index, message);
    }
    if enabled { paths } else { Vec::new() }
}

impl CrossConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let enabled: bool = reader.get("shenyu.cross.enabled");
        let config = Self {
            any_origin: reader.get("shenyu.cross.allowedAnyOrigin"),
            credentials: reader.get("shenyu.cross.allowCredentials"),
            headers: reader.list("shenyu.cross.allowedHeaders"),
            methods: reader.list("shenyu.cross.allowedMethods"),
            expose: reader.list("shenyu.cross.allowedExpose"),
            max_age: reader.get("shenyu.cross.maxAge"),
            origin_spacer: reader.get("shenyu.cross.allowedOrigin.spacer"),
            origin_domain: reader.optional("shenyu.cross.allowedOrigin.domain"),
            origin_prefixes: reader.list("shenyu.cross.allowedOrigin.prefixes"),
            origins: reader.list("shenyu.cross.allowedOrigin.origins"),
            origin_pattern: reader.optional("shenyu.cross.allowedOrigin.originRegex"),
        };
        if enabled && config.any_origin && config.credentials {
            reader.note(Notice::warn(
                "shenyu.cross allows any origin together with credentials: every web page can use \
                 a user's session",
            ));
        }
        enabled.then_some(config)
    }
}
