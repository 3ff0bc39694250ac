//! What users may do: the resources that their roles hold.

mod write;

use super::TextRow;
use crate::Result;
use crate::statement::{fetch_all, fetch_optional};
use crate::tx::Tx;

pub use write::{NewResource, delete_menus, has_menu, insert_resource};

/// A node of the tree of menus and buttons.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ResourceRow {
    /// Id of the node.
    pub id: String,
    /// Id of the node above, empty at a root.
    pub parent_id: String,
    /// Caption, or the key of one.
    pub title: String,
    /// Name of a menu.
    pub name: String,
    /// Address of a menu.
    pub url: String,
    /// Component of a menu.
    pub component: String,
    /// 0 root menu, 1 menu, 2 button.
    pub resource_type: i32,
    /// Its place.
    pub sort: i32,
    /// Name of an icon.
    pub icon: String,
    /// Whether nothing is below it.
    pub is_leaf: bool,
    /// Kept for the console.
    pub is_route: i32,
    /// The permission string of a button.
    pub perms: String,
    /// 1 when it counts.
    pub status: i32,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT r.id, r.parent_id, r.title, r.name, r.url, r.component, r.resource_type, r.sort,
                    r.icon, r.is_leaf, r.is_route, r.perms, r.status, r.created_ms, r.updated_ms
             FROM resource r ",
            $rest
        )
    };
}

/// The permission strings of a user, each once, ascending.
///
/// # Errors
/// The database's.
pub async fn of_user(tx: &mut Tx, user_id: &str) -> Result<Vec<String>> {
    let rows = fetch_all!(
        tx,
        TextRow,
        "SELECT DISTINCT r.perms AS text
         FROM user_role u
         JOIN permission p ON p.object_id = u.role_id
         JOIN resource r ON r.id = p.resource_id
         WHERE u.user_id = $1 AND r.resource_type = 2 AND r.perms <> '' ORDER BY r.perms",
        user_id,
    )?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

/// The resources that a user's roles hold, each once, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn resources_of_user(tx: &mut Tx, user_id: &str) -> Result<Vec<ResourceRow>> {
    fetch_all!(
        tx,
        ResourceRow,
        select!(
            "WHERE r.id IN (
                 SELECT p.resource_id FROM permission p JOIN user_role u ON u.role_id = p.object_id
                 WHERE u.user_id = $1)
             ORDER BY r.sort, r.id"
        ),
        user_id,
    )
}

/// All resources, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn resources(tx: &mut Tx) -> Result<Vec<ResourceRow>> {
    fetch_all!(tx, ResourceRow, select!("ORDER BY r.sort, r.id"))
}

/// The resource that carries a permission string; the first by id.
///
/// # Errors
/// The database's.
pub async fn find_resource_by_perms(tx: &mut Tx, perms: &str) -> Result<Option<ResourceRow>> {
    fetch_optional!(tx, ResourceRow, select!("WHERE r.perms = $1 ORDER BY r.id LIMIT 1"), perms)
}
