//! Snowflake ids, and the lease of their node part.
//!
//! An id is `milliseconds since 1288834974657 << 22 | node << 12 | sequence`, written as a decimal
//! string. Nodes are rows of `node_lease`: an admin takes the free one that has been out of use the
//! longest, so that two admins never share one and a restarted admin does not get its old one back.
//!
//! Source: the id scheme of ShenYu 2.7.1 (epoch, 12-bit sequence); the lease is ours.

use std::sync::Mutex;

use crate::Result;
use crate::dialect;
use crate::statement::{execute, fetch_optional};
use crate::tx::Tx;

/// Start of the ids' time, in milliseconds since 1970-01-01 UTC.
const EPOCH_MS: i64 = 1_288_834_974_657;

/// How long a node number is leased.
const LEASE_MS: i64 = 60 * 60 * 1000;

/// Node numbers: 0 to 1023.
pub(crate) const NODES: i64 = 1024;

const SEQUENCE_BITS: u32 = 12;

/// A leased node number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    number: i64,
    expires_ms: i64,
}

impl Node {
    pub(crate) const fn number(self) -> i64 {
        self.number
    }

    pub(crate) const fn is_valid_at(self, now_ms: i64) -> bool {
        now_ms < self.expires_ms
    }

    /// Whether it is time to renew: less than half of the lease is left.
    pub(crate) const fn is_old_at(self, now_ms: i64) -> bool {
        self.expires_ms - now_ms < LEASE_MS / 2
    }
}

#[derive(sqlx::FromRow)]
struct NodeRow {
    node: i64,
}

/// Leases a node to `owner`: renews `held` if it is still theirs, else takes a free one.
///
/// Out: `None` when all are taken, or when another admin was faster: try again.
pub(crate) async fn lease(tx: &mut Tx, owner: &str, held: Option<Node>) -> Result<Option<Node>> {
    // Ours before the database's, so that ours is over first; and what is written is the database's, so
    // that admins whose clocks differ agree on which nodes are free.
    let own_ms = tx.now_ms() + LEASE_MS;
    let now_ms = dialect::now_ms(tx).await?;
    let expires_ms = now_ms + LEASE_MS;
    if let Some(node) = held {
        let renewed = execute!(
            tx,
            "UPDATE node_lease SET expires_ms = $1 WHERE node = $2 AND owner = $3",
            expires_ms,
            node.number,
            owner,
        )?;
        if renewed == 1 {
            return Ok(Some(Node { number: node.number, expires_ms: own_ms }));
        }
    }
    // The outer condition on the time is checked again on the locked row: of two admins that chose
    // the same row, the second gets none.
    let row = fetch_optional!(
        tx,
        NodeRow,
        "UPDATE node_lease SET owner = $1, expires_ms = $2
         WHERE expires_ms <= $3 AND node = (
             SELECT node FROM node_lease WHERE expires_ms <= $3 ORDER BY expires_ms, node LIMIT 1)
         RETURNING node",
        owner,
        expires_ms,
        now_ms,
    )?;
    Ok(row.map(|row| Node { number: row.node, expires_ms: own_ms }))
}

/// Gives the node back; it becomes the last in the queue of free ones.
pub(crate) async fn release(tx: &mut Tx, owner: &str, node: Node) -> Result<()> {
    let now_ms = dialect::now_ms(tx).await?;
    execute!(
        tx,
        "UPDATE node_lease SET expires_ms = $1 WHERE node = $2 AND owner = $3",
        now_ms,
        node.number,
        owner,
    )?;
    Ok(())
}

/// Makes ids. Never waits: when the clock stands still or goes back, ids run ahead of it.
#[derive(Debug, Default)]
pub(crate) struct IdGenerator {
    /// Milliseconds and sequence of the last id, as one number.
    last: Mutex<i64>,
}

impl IdGenerator {
    pub(crate) fn next(&self, node: i64, now_ms: i64) -> i64 {
        debug_assert!((0..NODES).contains(&node), "node {node} is out of range");
        let now = (now_ms - EPOCH_MS).max(0) << SEQUENCE_BITS;
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = now.max(*last + 1);
        let (ms, sequence) = (*last >> SEQUENCE_BITS, *last & ((1 << SEQUENCE_BITS) - 1));
        ms << 22 | node << SEQUENCE_BITS | sequence
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{EPOCH_MS, IdGenerator};

    #[test]
    fn an_id_holds_time_node_and_sequence() {
        let ids = IdGenerator::default();
        assert_eq!(ids.next(5, EPOCH_MS + 7), 7 << 22 | 5 << 12);
        assert_eq!(ids.next(5, EPOCH_MS + 7), 7 << 22 | 5 << 12 | 1);
        assert_eq!(ids.next(5, EPOCH_MS + 8), 8 << 22 | 5 << 12);
    }

    #[test]
    fn a_full_millisecond_or_a_clock_set_back_makes_no_id_twice() {
        let ids = IdGenerator::default();
        let mut seen = HashSet::new();
        let mut before = -1;
        for now in [1000, 1000, 999, 5] {
            for _ in 0..5000 {
                let id = ids.next(1, EPOCH_MS + now);
                assert!(id > before, "{id} follows {before}");
                before = id;
                assert!(seen.insert(id));
            }
        }
    }
}
