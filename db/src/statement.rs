//! One SQL text, two stores: macros that expand a statement for both drivers.
//!
//! Every macro takes the transaction first, then the row type, the SQL text with `$1` placeholders
//! and the values to bind. `…_in!` puts a list of ids where the text says `{ids}`, in chunks; the
//! other values come before it.

use sqlx::AssertSqlSafe;

use crate::page::{ID_CHUNK, MAX_FILTER_IDS};
use crate::{Error, Result};

/// Runs an expression with the connection of either store.
macro_rules! on_conn {
    ($tx:expr, |$conn:ident| $body:expr) => {
        match $tx.conn() {
            $crate::tx::Conn::Pg(transaction) => {
                let $conn = &mut **transaction;
                $body
            }
            $crate::tx::Conn::Sqlite(transaction) => {
                let $conn = &mut **transaction;
                $body
            }
        }
    };
}

/// Where a statement stands in the source; for error texts.
macro_rules! here {
    () => {
        concat!(file!(), ":", line!())
    };
}

/// All rows of a statement.
macro_rules! fetch_all {
    ($tx:expr, $row:ty, $sql:expr $(, $bind:expr)* $(,)?) => {
        $crate::statement::on_conn!($tx, |conn| sqlx::query_as::<_, $row>($sql)
            $(.bind($bind))*
            .fetch_all(conn)
            .await)
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    };
}

/// The row of a statement, if there is one.
macro_rules! fetch_optional {
    ($tx:expr, $row:ty, $sql:expr $(, $bind:expr)* $(,)?) => {
        $crate::statement::on_conn!($tx, |conn| sqlx::query_as::<_, $row>($sql)
            $(.bind($bind))*
            .fetch_optional(conn)
            .await)
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    };
}

/// The one row of a statement that always has one.
macro_rules! fetch_one {
    ($tx:expr, $row:ty, $sql:expr $(, $bind:expr)* $(,)?) => {
        $crate::statement::on_conn!($tx, |conn| sqlx::query_as::<_, $row>($sql)
            $(.bind($bind))*
            .fetch_one(conn)
            .await)
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    };
}

/// Runs a statement; the number of rows it touched.
macro_rules! execute {
    ($tx:expr, $sql:expr $(, $bind:expr)* $(,)?) => {
        $crate::statement::on_conn!($tx, |conn| sqlx::query($sql)
            $(.bind($bind))*
            .execute(conn)
            .await
            .map(|done| done.rows_affected()))
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    };
}

/// Counts its arguments.
macro_rules! count {
    ($($x:expr),*) => {
        <[()]>::len(&[$($crate::statement::unit!($x)),*])
    };
}

/// Stands for one argument of [`count!`].
macro_rules! unit {
    ($x:expr) => {
        ()
    };
}

/// All rows of a statement over a list of ids, chunk by chunk; the values come before the ids.
macro_rules! fetch_all_in {
    ($tx:expr, $row:ty, $template:expr, $ids:expr $(, $bind:expr)* $(,)?) => {{
        let mut rows: Vec<$row> = Vec::new();
        for chunk in $crate::statement::chunks(&$ids) {
            let sql = $crate::statement::with_ids(
                $template,
                $crate::statement::count!($($bind),*),
                chunk.len(),
            );
            rows.extend(
                $crate::statement::on_conn!($tx, |conn| {
                    let mut query = sqlx::query_as::<_, $row>(sql) $(.bind($bind))*;
                    for id in chunk {
                        query = query.bind(id);
                    }
                    query.fetch_all(conn).await
                })
                .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))?,
            );
        }
        rows
    }};
}

/// Runs a statement over a list of ids, chunk by chunk; the number of rows it touched.
macro_rules! execute_in {
    ($tx:expr, $template:expr, $ids:expr $(, $bind:expr)* $(,)?) => {{
        let mut touched = 0;
        for chunk in $crate::statement::chunks(&$ids) {
            let sql = $crate::statement::with_ids(
                $template,
                $crate::statement::count!($($bind),*),
                chunk.len(),
            );
            touched += $crate::statement::on_conn!($tx, |conn| {
                let mut query = sqlx::query(sql) $(.bind($bind))*;
                for id in chunk {
                    query = query.bind(id);
                }
                query.execute(conn).await.map(|done| done.rows_affected())
            })
            .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))?;
        }
        touched
    }};
}

/// All rows of a statement with one optional list of ids, in one piece: for lists that are paged.
///
/// The text names the list `{ids}`; the values come before it. More than [`MAX_FILTER_IDS`] are
/// refused.
macro_rules! fetch_all_where {
    ($tx:expr, $row:ty, $template:expr, $ids:expr $(, $bind:expr)* $(,)?) => {{
        let ids = $crate::statement::whole(&$ids)?;
        let sql = $crate::statement::with_ids(
            $template,
            $crate::statement::count!($($bind),*),
            ids.len(),
        );
        $crate::statement::on_conn!($tx, |conn| {
            let mut query = sqlx::query_as::<_, $row>(sql) $(.bind($bind))*;
            for id in ids {
                query = query.bind(id);
            }
            query.fetch_all(conn).await
        })
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    }};
}

/// As [`fetch_all_where!`], for the one row of a count.
macro_rules! fetch_one_where {
    ($tx:expr, $row:ty, $template:expr, $ids:expr $(, $bind:expr)* $(,)?) => {{
        let ids = $crate::statement::whole(&$ids)?;
        let sql = $crate::statement::with_ids(
            $template,
            $crate::statement::count!($($bind),*),
            ids.len(),
        );
        $crate::statement::on_conn!($tx, |conn| {
            let mut query = sqlx::query_as::<_, $row>(sql) $(.bind($bind))*;
            for id in ids {
                query = query.bind(id);
            }
            query.fetch_one(conn).await
        })
        .map_err(|source| $crate::Error::sql($crate::statement::here!(), source))
    }};
}

pub(crate) use {
    count, execute, execute_in, fetch_all, fetch_all_in, fetch_all_where, fetch_one,
    fetch_one_where, fetch_optional, here, on_conn, unit,
};

/// Cuts a list of ids into chunks whose lengths are few (powers of two and [`ID_CHUNK`]), so that
/// few different statements arise: the last id of a chunk is repeated to fill it. An id that comes
/// twice is taken once.
pub(crate) fn chunks<S: AsRef<str>>(ids: &[S]) -> Vec<Vec<&str>> {
    unique(ids)
        .chunks(ID_CHUNK)
        .map(|chunk| fill(chunk.to_vec(), chunk.len().next_power_of_two().min(ID_CHUNK)))
        .collect()
}

/// A list of ids in one piece, filled up as [`chunks`] does.
pub(crate) fn whole<S: AsRef<str>>(ids: &[S]) -> Result<Vec<&str>> {
    let ids = unique(ids);
    if ids.len() > MAX_FILTER_IDS {
        return Err(Error::TooManyIds { count: ids.len(), most: MAX_FILTER_IDS });
    }
    let length = ids.len().next_power_of_two();
    Ok(fill(ids, length))
}

/// Each id once, ascending: rows that are ordered by id are so over all chunks.
fn unique<S: AsRef<str>>(ids: &[S]) -> Vec<&str> {
    let mut ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Repeats the last id up to a length; an empty list stays empty.
fn fill(mut ids: Vec<&str>, length: usize) -> Vec<&str> {
    if let Some(last) = ids.last().copied() {
        ids.resize(length, last);
    }
    ids
}

/// Replaces `{ids}` by `count` placeholders that follow the first `bound` ones; by `NULL`, which
/// nothing equals, when there is none.
///
/// The text comes from this crate and the rest are placeholders: nothing of a user gets in.
pub(crate) fn with_ids(template: &str, bound: usize, count: usize) -> AssertSqlSafe<String> {
    let mut list = String::with_capacity(count * 5);
    if count == 0 {
        list.push_str("NULL");
    }
    for n in 1..=count {
        if n > 1 {
            list.push(',');
        }
        list.push('$');
        list.push_str(&(bound + n).to_string());
    }
    AssertSqlSafe(template.replace("{ids}", &list))
}

/// `rows` groups of `columns` placeholders, for an `INSERT … VALUES` of many rows.
pub(crate) fn values(head: &str, rows: usize, columns: usize) -> AssertSqlSafe<String> {
    let mut sql = String::with_capacity(head.len() + rows * columns * 6);
    sql.push_str(head);
    for row in 0..rows {
        sql.push_str(if row == 0 { " (" } else { ", (" });
        for column in 1..=columns {
            if column > 1 {
                sql.push_str(", ");
            }
            sql.push('$');
            sql.push_str(&(row * columns + column).to_string());
        }
        sql.push(')');
    }
    AssertSqlSafe(sql)
}

#[cfg(test)]
mod tests {
    use super::{MAX_FILTER_IDS, chunks, values, whole, with_ids};
    use crate::Error;

    #[test]
    fn chunks_have_few_lengths_and_lose_nothing() {
        let ids: Vec<String> = (0..1003).map(|n| n.to_string()).collect();
        let lengths: Vec<usize> = chunks(&ids).iter().map(Vec::len).collect();
        assert_eq!(lengths, [500, 500, 4]);
        assert!(chunks(&ids[..0]).is_empty());
        assert!(whole(&ids[..0]).unwrap().is_empty());
        assert_eq!(chunks(&ids[..3]), [["0", "1", "2", "2"]]);
        assert_eq!(whole(&ids[..3]).unwrap(), ["0", "1", "2", "2"]);
        let many: Vec<String> = (0..=MAX_FILTER_IDS).map(|n| n.to_string()).collect();
        assert_eq!(whole(&many[1..]).unwrap().len(), MAX_FILTER_IDS);
        assert!(matches!(whole(&many), Err(Error::TooManyIds { count: 4097, most: 4096 })));
        assert_eq!(chunks(&ids[..300])[0].len(), 500);
        assert_eq!(chunks(&["b", "a", "b"]), [["a", "b"]]);
    }

    #[test]
    fn placeholders_follow_the_bound_ones() {
        assert_eq!(with_ids("x IN ({ids})", 2, 3).0, "x IN ($3,$4,$5)");
        assert_eq!(
            values("INSERT INTO t VALUES", 2, 2).0,
            "INSERT INTO t VALUES ($1, $2), ($3, $4)"
        );
    }
}
