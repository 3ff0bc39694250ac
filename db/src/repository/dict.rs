//! Dictionary rows: the choices of form fields.

use crate::Result;
use crate::statement::{fetch_all, fetch_all_in, fetch_optional};
use crate::tx::Tx;

/// A stored dictionary row.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DictRow {
    /// Id of the row.
    pub id: String,
    /// Its list; for form fields the name of the field.
    #[sqlx(rename = "type")]
    pub dict_type: String,
    /// Its code.
    pub dict_code: String,
    /// Its caption.
    pub dict_name: String,
    /// Its value.
    pub dict_value: Option<String>,
    /// Free text; the reference calls it `desc`.
    pub description: Option<String>,
    /// Its place.
    pub sort: i32,
    /// Whether it is offered.
    pub enabled: bool,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, type, dict_code, dict_name, dict_value, description, sort, enabled,
                    created_ms, updated_ms
             FROM shenyu_dict ",
            $rest
        )
    };
}

/// All rows of a list, switched off ones too, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn of_type(tx: &mut Tx, dict_type: &str) -> Result<Vec<DictRow>> {
    fetch_all!(tx, DictRow, select!("WHERE type = $1 ORDER BY sort, id"), dict_type)
}

/// The rows of several lists that are offered, by list, sort and id.
///
/// # Errors
/// The database's.
pub async fn enabled_of_types<S: AsRef<str>>(tx: &mut Tx, types: &[S]) -> Result<Vec<DictRow>> {
    Ok(fetch_all_in!(
        tx,
        DictRow,
        select!("WHERE enabled = TRUE AND type IN ({ids}) ORDER BY type, sort, id"),
        types,
    ))
}

/// One row.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<DictRow>> {
    fetch_optional!(tx, DictRow, select!("WHERE id = $1"), id)
}
