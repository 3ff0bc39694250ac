//! The settings of an admin, as its parts use them.

use std::path::PathBuf;

use jiff::tz::TimeZone;

use crate::{
    auth::{PasswordCipher, PathPatterns},
    publish::SyncSettings,
};

/// Settings of one admin.
#[derive(Debug, Clone)]
pub struct AdminConfig {
    /// Where to listen, `host:port`.
    pub listen: String,
    /// Prefix of every path, empty or with a leading slash.
    pub context_path: String,
    /// Where files are kept that the admin makes (database, generated password).
    pub data_dir: PathBuf,
    /// Where the database is, as [`longmen_db::Location::parse`] takes it; a SQLite file in
    /// [`Self::data_dir`] when absent.
    pub database: Option<String>,
    /// The password of `admin` at the first start; generated when absent.
    pub initial_password: Option<String>,
    /// The zone of date texts.
    pub time_zone: TimeZone,
    /// Life of a token in milliseconds.
    pub token_life_ms: i64,
    /// Paths that ask for no token, besides those that are public anyway.
    pub white_list: PathPatterns,
    /// Opens passwords that clients encrypted.
    pub password_cipher: Option<PasswordCipher>,
    /// Permission strings that only the super user has.
    pub super_user_permissions: Vec<String>,
    /// Whether the super user's password must be fit for calls with those permissions.
    pub super_user_password_guard: bool,
    /// Age past which it no longer is, in milliseconds.
    pub super_user_password_max_age_ms: i64,
    /// Entries of the operation log that are listed.
    pub operation_log_limit: i64,
    /// The sync with gateways.
    pub sync: SyncSettings,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:9095".to_owned(),
            context_path: String::new(),
            data_dir: PathBuf::from("."),
            database: None,
            initial_password: None,
            time_zone: TimeZone::system(),
            token_life_ms: 86_400_000,
            white_list: PathPatterns::default(),
            password_cipher: None,
            super_user_permissions: [
                "system:manager:add",
                "system:manager:edit",
                "system:manager:delete",
                "system:role:add",
                "system:role:edit",
                "system:role:delete",
                "system:resource:addButton",
                "system:resource:addMenu",
                "system:resource:editButton",
                "system:resource:editMenu",
                "system:resource:deleteButton",
                "system:resource:deleteMenu",
            ]
            .map(str::to_owned)
            .to_vec(),
            super_user_password_guard: true,
            super_user_password_max_age_ms: 2_592_000_000,
            operation_log_limit: 12,
            sync: SyncSettings::default(),
        }
    }
}
