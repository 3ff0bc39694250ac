//! What selectors and rules have in common: they have conditions, a switch and a place in an order,
//! and belong to something.
//!
//! Say which of the two by its type: `conditioned::find::<Rule>(tx, id)`. What differs is in
//! [`selector`](super::selector) and [`rule`](super::rule).

use longmen_core::model::{Condition, Level};
use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use super::{ConditionRow, CountRow, condition};
use crate::page::{Keyword, Page, PageRequest};
use crate::statement::{
    execute_in, fetch_all, fetch_all_in, fetch_all_where, fetch_one_where, fetch_optional,
};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A selector or rule as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The object. Lists leave its `condition_list` absent; the other functions fill it.
    pub object: T,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// Which objects a list holds; what is empty or `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectFilter {
    /// Their namespace.
    pub namespace_id: Option<String>,
    /// What they belong to: plugins have selectors, selectors have rules. At most
    /// [`MAX_FILTER_IDS`](crate::MAX_FILTER_IDS).
    pub owner_ids: Vec<String>,
    /// Text in their name.
    pub keyword: Keyword,
    /// Whether they are enabled.
    pub enabled: Option<bool>,
    /// The user who must be granted them.
    pub granted_to: Option<String>,
}

/// A selector or a rule. The rest of it is this crate's alone.
pub trait Conditioned: Sized + sealed::Sealed {
    /// Which of the two.
    const LEVEL: Level;
}

/// What [`Conditioned`] keeps to this crate.
pub(super) mod sealed {
    use super::{Condition, Stored};

    /// Rows, statements and members of one of the two.
    pub trait Sealed: Sized {
        /// A row of either store.
        type Row: super::StoredRow;

        /// The table.
        const TABLE: &'static str;
        /// How many the filter lets through.
        const COUNT: &'static str;
        /// One page of them.
        const PAGE: &'static str;
        /// The one of an id.
        const FIND: &'static str;
        /// Those of a list of ids.
        const FIND_MANY: &'static str;
        /// Those that belong to a list of owners.
        const OF_OWNERS: &'static str;
        /// All of a namespace.
        const OF_NAMESPACE: &'static str;
        /// Sets the switch.
        const SET_ENABLED: &'static str;

        /// What a row says.
        fn stored(row: Self::Row) -> Stored<Self>;
        /// Its id.
        fn id(&self) -> &str;
        /// Its conditions.
        fn conditions_mut(&mut self) -> &mut Option<Vec<Condition>>;
    }
}

/// What can be read from a row of either store.
pub trait StoredRow:
    for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin
{
}

impl<T> StoredRow for T where
    T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin
{
}

/// The statements of one of the two, from the words in which they differ: the table (called `o`), its
/// columns for name and owner, the code of its grants, and what a row is read from.
macro_rules! statements {
    ($table:literal, name: $name:literal, owner: $owner:literal, grants: $code:literal,
     $select:expr) => {
        const TABLE: &'static str = $table;
        const COUNT: &'static str = concat!(
            "SELECT COUNT(*) AS n FROM ",
            $table,
            " o",
            $crate::repository::conditioned::filter!($name, $owner, $code)
        );
        const PAGE: &'static str = concat!(
            $select,
            $crate::repository::conditioned::filter!($name, $owner, $code),
            " ORDER BY o.sort_code, o.id LIMIT $7 OFFSET $8"
        );
        const FIND: &'static str = concat!($select, " WHERE o.id = $1");
        const FIND_MANY: &'static str = concat!($select, " WHERE o.id IN ({ids}) ORDER BY o.id");
        const OF_OWNERS: &'static str = concat!(
            $select,
            " WHERE o.",
            $owner,
            " IN ({ids}) ORDER BY o.",
            $owner,
            ", o.sort_code, o.id"
        );
        const OF_NAMESPACE: &'static str =
            concat!($select, " WHERE o.namespace_id = $1 ORDER BY o.id");
        const SET_ENABLED: &'static str =
            concat!("UPDATE ", $table, " SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})");
    };
}

/// The condition of [`ObjectFilter`]; its values are bound in the order of the members, the owners'
/// number in their place, and the owners last.
macro_rules! filter {
    ($name:literal, $owner:literal, $code:literal) => {
        concat!(
            " WHERE (CAST($1 AS TEXT) IS NULL OR o.namespace_id = $1)
                AND (CAST($2 AS TEXT) IS NULL OR LOWER(o.",
            $name,
            ") LIKE $2 ESCAPE '\\')
                AND (CAST($3 AS TEXT) IS NULL OR LOWER(o.",
            $name,
            ") NOT LIKE $3 ESCAPE '\\')
                AND (CAST($4 AS BOOLEAN) IS NULL OR o.enabled = $4)
                AND (CAST($5 AS TEXT) IS NULL OR EXISTS (
                    SELECT 1 FROM data_permission d
                    WHERE d.user_id = $5 AND d.data_type = ",
            $code,
            " AND d.data_id = o.id))
                AND (CAST($6 AS BIGINT) = 0 OR o.",
            $owner,
            " IN ({ids}))"
        )
    };
}

pub(super) use {filter, statements};

/// One page, by sort, then id; without conditions.
///
/// # Errors
/// The database's; [`Error::TooManyIds`](crate::Error::TooManyIds) for too many owners.
pub async fn page<T: Conditioned>(
    tx: &mut Tx,
    filter: &ObjectFilter,
    request: PageRequest,
) -> Result<Page<Stored<T>>> {
    let owners = i64::try_from(filter.owner_ids.len()).unwrap_or(i64::MAX);
    let total = fetch_one_where!(
        tx,
        CountRow,
        T::COUNT,
        filter.owner_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        owners,
    )?
    .n;
    let rows = fetch_all_where!(
        tx,
        T::Row,
        T::PAGE,
        filter.owner_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        owners,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows: rows.into_iter().map(T::stored).collect(), total })
}

/// One with its conditions.
///
/// # Errors
/// The database's.
pub async fn find<T: Conditioned>(tx: &mut Tx, id: &str) -> Result<Option<Stored<T>>> {
    let Some(row) = fetch_optional!(tx, T::Row, T::FIND, id)? else { return Ok(None) };
    let mut found = with_conditions::<T>(tx, vec![row]).await?;
    Ok(found.pop())
}

/// As [`find`], and holds it until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_for_update<T: Conditioned>(
    uow: &mut UnitOfWork,
    id: &str,
) -> Result<Option<Stored<T>>> {
    hold::<T>(uow, &[id]).await?;
    find::<T>(uow, id).await
}

/// Those that exist, with their conditions, by id.
///
/// # Errors
/// The database's.
pub async fn find_many<T: Conditioned>(
    tx: &mut Tx,
    ids: &[impl AsRef<str>],
) -> Result<Vec<Stored<T>>> {
    let rows = fetch_all_in!(tx, T::Row, T::FIND_MANY, ids);
    with_conditions::<T>(tx, rows).await
}

/// As [`find_many`], and holds them until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<T: Conditioned>(
    uow: &mut UnitOfWork,
    ids: &[impl AsRef<str>],
) -> Result<Vec<Stored<T>>> {
    hold::<T>(uow, ids).await?;
    find_many::<T>(uow, ids).await
}

/// All that belong to the owners, with their conditions, by owner, sort and id.
///
/// # Errors
/// The database's.
pub async fn of_owners<T: Conditioned>(
    tx: &mut Tx,
    owner_ids: &[impl AsRef<str>],
) -> Result<Vec<Stored<T>>> {
    let rows = fetch_all_in!(tx, T::Row, T::OF_OWNERS, owner_ids);
    with_conditions::<T>(tx, rows).await
}

/// The stored conditions of one, in their order.
///
/// # Errors
/// The database's.
pub async fn conditions<T: Conditioned>(tx: &mut Tx, id: &str) -> Result<Vec<ConditionRow>> {
    condition::rows(tx, T::LEVEL, &[id]).await
}

/// Switches them on or off. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_enabled<T: Conditioned>(
    uow: &mut UnitOfWork,
    ids: &[impl AsRef<str>],
    enabled: bool,
) -> Result<u64> {
    hold::<T>(uow, ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(uow, T::SET_ENABLED, ids, enabled, now_ms))
}

/// Holds them until the end of the transaction.
pub(super) async fn hold<T: Conditioned>(
    uow: &mut UnitOfWork,
    ids: &[impl AsRef<str>],
) -> Result<()> {
    dialect::hold_rows(uow, T::TABLE, ids).await
}

/// What rows say, with the conditions.
pub(super) async fn with_conditions<T: Conditioned>(
    tx: &mut Tx,
    rows: Vec<T::Row>,
) -> Result<Vec<Stored<T>>> {
    let mut found: Vec<Stored<T>> = rows.into_iter().map(T::stored).collect();
    let ids: Vec<&str> = found.iter().map(|row| row.object.id()).collect();
    let mut conditions = condition::by_owner(tx, T::LEVEL, &ids).await?;
    for Stored { object, .. } in &mut found {
        let own = conditions.remove(object.id()).unwrap_or_default();
        *object.conditions_mut() = Some(own);
    }
    Ok(found)
}

/// All of a namespace without conditions, by id.
pub(crate) async fn of_namespace<T: Conditioned>(
    tx: &mut Tx,
    namespace_id: &str,
) -> Result<Vec<T>> {
    let rows = fetch_all!(tx, T::Row, T::OF_NAMESPACE, namespace_id)?;
    Ok(rows.into_iter().map(|row| T::stored(row).object).collect())
}
