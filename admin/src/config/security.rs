//! Login, tokens and the paths that need none.

use std::path::PathBuf;
use std::time::Duration;

use longmen_core::config::{
    KeySpec, Kind, MILLIS, Notice, Reader, Secret, Section, TEXTS, TimeUnit,
};

/// The paths that need no token, unless configured.
const WHITE_LIST: &str = "/, /favicon.*, /static/**, /index**, /platform/login, \
    /platform/secretInfo, /websocket, /error, /actuator/health, /actuator/health/**, \
    /actuator/prometheus, /swagger-ui.html, /swagger-ui/**, /webjars/**, /v3/api-docs/**, /csrf, \
    /alert/report";

/// The permissions that only the user `admin` has, unless configured.
const SUPER_ADMIN_ONLY: &str = "system:manager:add, system:manager:edit, system:manager:delete, \
    system:role:add, system:role:edit, system:role:delete, system:resource:addButton, \
    system:resource:addMenu, system:resource:editButton, system:resource:editMenu, \
    system:resource:deleteButton, system:resource:deleteMenu";

const NOT_YET: &str = "logins by a directory";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Login and permissions",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.admin.password",
            Kind::Secret,
            "",
            "The password of user `admin`, set when the store is empty.",
        )
        .computed("made at first start, printed once and kept in `shenyu.admin.passwordPath`"),
        KeySpec::new(
            "shenyu.admin.passwordPath",
            Kind::File,
            ".data/admin-password",
            "The file that a generated password is written to.",
        ),
        KeySpec::new(
            "shenyu.jwt.expired-seconds",
            Kind::Time { unit: TimeUnit::Millis, min_ms: 1000 },
            "86400000",
            "How long a login lasts, in **milliseconds** in spite of the name.",
        ),
        KeySpec::new(
            "shenyu.shiro.white-list",
            TEXTS,
            WHITE_LIST,
            "Paths that need no token, as ant patterns.",
        ),
        KeySpec::new(
            "shenyu.aes.secret.key",
            Kind::Secret,
            "",
            "The key that consoles encrypt passwords with: 16, 24 or 32 bytes.",
        ),
        KeySpec::new(
            "shenyu.aes.secret.iv",
            Kind::Secret,
            "",
            "Its initialisation vector: 16 bytes.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.recordLogLimit",
            Kind::Int { min: 1, max: 10_000 },
            "12",
            "Entries of the short operation log.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.onlyCleanDays",
            Kind::Int { min: 0, max: 36_500 },
            "3",
            "Days of the operation log that a clean-up leaves.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.enablePrintApiLog",
            Kind::Bool,
            "false",
            "Whether REST calls are logged, without passwords and tokens.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.enableOnlySuperAdminPermission",
            Kind::Bool,
            "true",
            "Whether some permissions are the user `admin`'s alone.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.onlySuperAdminPermission",
            TEXTS,
            SUPER_ADMIN_ONLY,
            "Those permissions.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.enableSuperAdminPasswordSafe",
            Kind::Bool,
            "true",
            "Whether `admin` is told to change an old password.",
        ),
        KeySpec::new(
            "shenyu.dashboard.core.superAdminPasswordValidDuration",
            MILLIS,
            "2592000000",
            "The age at which it is old.",
        ),
        KeySpec::pending("shenyu.ldap.enabled", Kind::Bool, NOT_YET),
        KeySpec::inert("shenyu.ldap.*", "logins by a directory are not switched on"),
    ],
};

/// Login, tokens and permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityConfig {
    /// The first password of user `admin`; `None`: one is made.
    pub admin_password: Option<Secret>,
    /// The file that a generated password is written to.
    pub admin_password_path: PathBuf,
    /// How long a login lasts.
    pub token_lifetime: Duration,
    /// Paths that need no token, as ant patterns.
    pub white_list: Vec<String>,
    /// Key and vector that consoles encrypt passwords with; `None`: passwords come as they are.
    pub aes: Option<AesConfig>,
    /// What the console's pages are told and held to.
    pub dashboard: DashboardConfig,
}

/// Key and vector of AES-CBC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AesConfig {
    /// 16, 24 or 32 bytes.
    pub key: Secret,
    /// 16 bytes.
    pub iv: Secret,
}

/// `shenyu.dashboard.core.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DashboardConfig {
    /// Entries of the short operation log.
    pub record_log_limit: u32,
    /// Days of the operation log that a clean-up leaves.
    pub only_clean_days: u32,
    /// Whether REST calls are logged.
    pub print_api_log: bool,
    /// Permissions that are the user `admin`'s alone; empty while switched off.
    pub only_super_admin_permissions: Vec<String>,
    /// The age at which `admin` is told to change the password; `None`: never.
    pub super_admin_password_valid: Option<Duration>,
}

impl SecurityConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            admin_password: reader.secret("shenyu.admin.password"),
            admin_password_path: reader.get("shenyu.admin.passwordPath"),
            token_lifetime: reader.get("shenyu.jwt.expired-seconds"),
            white_list: white_list(reader),
            aes: AesConfig::read(reader),
            dashboard: DashboardConfig::read(reader),
        }
    }
}

fn white_list(reader: &mut Reader<'_>) -> Vec<String> {
    let paths: Vec<String> = reader.list("shenyu.shiro.white-list");
    for (index, bad) in paths.iter().enumerate().filter(|(_, path)| !path.starts_with('/')) {
        let message = format!("expected a path that begins with /, found \"{bad}\"");
        reader.reject_item("shenyu.shiro.white-list", index, message);
    }
    if let Some(wide) = paths.iter().find(|path| matches!(path.as_str(), "/**" | "/*")) {
        reader.note(Notice::warn(format!(
            "shenyu.shiro.white-list has {wide}: much of the API needs no login"
        )));
    }
    paths
}

impl AesConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let key = reader.secret("shenyu.aes.secret.key");
        let iv = reader.secret("shenyu.aes.secret.iv");
        if let Some(key) = &key {
            let bytes = key.expose().len();
            if !matches!(bytes, 16 | 24 | 32) {
                reader.reject(
                    "shenyu.aes.secret.key",
                    format!("expected a key of 16, 24 or 32 bytes, found one of {bytes}"),
                );
            }
        }
        if let Some(iv) = &iv {
            let bytes = iv.expose().len();
            if bytes != 16 {
                reader.reject(
                    "shenyu.aes.secret.iv",
                    format!("expected a vector of 16 bytes, found one of {bytes}"),
                );
            }
        }
        Some(Self { key: key?, iv: iv? })
    }
}

impl DashboardConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let only: bool = reader.get("shenyu.dashboard.core.enableOnlySuperAdminPermission");
        let permissions = reader.list("shenyu.dashboard.core.onlySuperAdminPermission");
        let safe: bool = reader.get("shenyu.dashboard.core.enableSuperAdminPasswordSafe");
        let valid = reader.get("shenyu.dashboard.core.superAdminPasswordValidDuration");
        Self {
            record_log_limit: reader.get("shenyu.dashboard.core.recordLogLimit"),
            only_clean_days: reader.get("shenyu.dashboard.core.onlyCleanDays"),
            print_api_log: reader.get("shenyu.dashboard.core.enablePrintApiLog"),
            only_super_admin_permissions: if only { permissions } else { Vec::new() },
            super_admin_password_valid: safe.then_some(valid),
        }
    }
}
