//! Changing the tree of menus and buttons.

use crate::statement::{execute, execute_in, fetch_all, fetch_all_in};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

use super::super::{CountRow, TextRow};

/// A node to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewResource {
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
    /// The permission string of a button.
    pub perms: String,
}

/// Stores a new node, in force at once. Out: its id.
///
/// # Errors
/// The database's.
pub async fn insert_resource(uow: &mut UnitOfWork, new: &NewResource) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO resource (id, parent_id, title, name, url, component, resource_type, sort,
             icon, is_leaf, is_route, perms, status, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, 1, $12, $12)",
        id.as_str(),
        new.parent_id.as_str(),
        new.title.as_str(),
        new.name.as_str(),
        new.url.as_str(),
        new.component.as_str(),
        new.resource_type,
        new.sort,
        new.icon.as_str(),
        new.is_leaf,
        new.perms.as_str(),
        now_ms,
    )?;
    Ok(id)
}

/// Whether a menu of this title exists.
///
/// # Errors
/// The database's.
pub async fn has_menu(tx: &mut Tx, title: &str) -> Result<bool> {
    let rows = fetch_all!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM resource WHERE resource_type <> 2 AND title = $1",
        title,
    )?;
    Ok(rows.iter().any(|row| row.n > 0))
}

/// Deletes the menus of these titles with their buttons and all grants. Out: how many nodes.
///
/// # Errors
/// The database's.
pub async fn delete_menus<S: AsRef<str>>(uow: &mut UnitOfWork, titles: &[S]) -> Result<u64> {
    let menus = fetch_all_in!(
        uow,
        TextRow,
        "SELECT id AS text FROM resource WHERE resource_type <> 2 AND title IN ({ids})",
        titles
    );
    let menus: Vec<String> = menus.into_iter().map(|row| row.text).collect();
    dialect::hold_rows(uow, "resource", &menus).await?;
    let buttons = execute_in!(uow, "DELETE FROM resource WHERE parent_id IN ({ids})", menus);
    let menus = execute_in!(uow, "DELETE FROM resource WHERE id IN ({ids})", menus);
    Ok(buttons + menus)
}
