//! Menus and buttons: what a console shows a user.

use std::collections::{BTreeMap, HashSet};

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_db::repository::{namespace_plugin, permission, permission::ResourceRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    context::Context,
    error::{ApiError, ApiResult},
    extract::{FromQuery, JavaType, Query, QueryArgs},
    permission::{
        Permission::{AnyOf, Authenticated},
        SUPER_USER,
    },
    reply::Reply,
    router::Routes,
};

/// Resource types.
const MENUS: [i32; 2] = [0, 1];
const BUTTON: i32 = 2;

/// The address that menus of plugins begin with.
const PLUGIN_MENUS: &str = "/plug/";

pub(super) fn routes() -> Routes {
    Routes::new("menu")
        .get(
            "/permission/getUserPermissionByToken",
            Authenticated,
            "The caller's menus and buttons",
            granted,
        )
        .get(
            "/permission/getUserPermissionByNamespace",
            Authenticated,
            "The caller's menus and buttons in a namespace",
            granted,
        )
        .get(
            "/resource/menu",
            AnyOf(&["system:manager:configureDataPermission"]),
            "The whole tree of menus",
            tree,
        )
}

/// A menu and what is below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct MenuResponse {
    id: String,
    name: String,
    url: String,
    component: String,
    meta: MenuMeta,
    /// Null where nothing can be below.
    #[schema(no_recursion)]
    children: Option<Vec<MenuResponse>>,
    sort: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct MenuMeta {
    icon: String,
    /// Caption, or the key of one.
    title: String,
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct ButtonResponse {
    perms: String,
    description: String,
    icon: String,
}

/// Menus and buttons of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GrantedResponse {
    menu: Vec<MenuResponse>,
    /// Buttons that the user may press.
    current_auth: Vec<ButtonResponse>,
    /// All buttons there are.
    all_auth: Vec<ButtonResponse>,
}

struct GrantedQuery {
    namespace_id: Option<String>,
}

impl FromQuery for GrantedQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] =
        &[("namespaceId", JavaType::String, false)];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self { namespace_id: args.filled("namespaceId") })
    }
}

async fn granted(
    context: Context,
    Query(query): Query<GrantedQuery>,
) -> ApiResult<Reply<GrantedResponse>> {
    let caller = context.caller()?;
    let mut tx = context.read().await?;
    let mut mine = permission::resources_of_user(&mut tx, &caller.user_id).await?;
    if caller.name != SUPER_USER {
        let namespace_id = query.namespace_id.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let linked = namespace_plugin::of_namespace(&mut tx, namespace_id).await?;
        let linked: HashSet<&str> = linked.iter().map(|row| row.name.as_str()).collect();
        let reserved = &context.state().config().security.dashboard.only_super_admin_permissions;
        mine.retain(|resource| {
            let plugin = resource.url.strip_prefix(PLUGIN_MENUS);
            !reserved.contains(&resource.perms) && plugin.is_none_or(|name| linked.contains(name))
        });
    }
    if mine.is_empty() {
        return Err(ApiError::refused("get menu and permission failed"));
    }
    let all = permission::resources(&mut tx).await?;
    let response = GrantedResponse {
        current_auth: buttons(&mine),
        all_auth: buttons(&all),
        menu: menus(mine),
    };
    Ok(Reply::new("get menu and permission success", response))
}

async fn tree(context: Context, (): ()) -> ApiResult<Reply<Vec<MenuResponse>>> {
    let all = permission::resources(&mut *context.read().await?).await?;
    let menus = menus(all);
    if menus.is_empty() {
        return Err(ApiError::refused("query failed"));
    }
    Ok(Reply::new("query success", menus))
}

fn buttons(resources: &[ResourceRow]) -> Vec<ButtonResponse> {
    resources
        .iter()
        .filter(|resource| resource.resource_type == BUTTON && resource.status == 1)
        .map(|resource| ButtonResponse {
            perms: resource.perms.clone(),
            description: resource.title.clone(),
            icon: resource.icon.clone(),
        })
        .collect()
}

/// The tree of the menus, each level in the order of `resources`. A menu whose parent is not there
/// is left out, and so is what hangs in a ring.
fn menus(resources: Vec<ResourceRow>) -> Vec<MenuResponse> {
    let mut below: BTreeMap<String, Vec<ResourceRow>> = BTreeMap::new();
    for resource in resources {
        if MENUS.contains(&resource.resource_type) && resource.status == 1 {
            below.entry(resource.parent_id.clone()).or_default().push(resource);
        }
    }
    children("", &mut below)
}

fn children(parent: &str, below: &mut BTreeMap<String, Vec<ResourceRow>>) -> Vec<MenuResponse> {
    // Taken out, so that a ring ends.
    let rows = below.remove(parent).unwrap_or_default();
    rows.into_iter()
        .map(|row| MenuResponse {
            children: (!row.is_leaf).then(|| children(&row.id, below)),
            id: row.id,
            name: row.name,
            url: row.url,
            component: row.component,
            meta: MenuMeta { icon: row.icon, title: row.title },
            sort: row.sort,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, parent: &str, resource_type: i32, is_leaf: bool) -> ResourceRow {
        ResourceRow {
            id: id.to_owned(),
            parent_id: parent.to_owned(),
            title: id.to_owned(),
            name: id.to_owned(),
            url: format!("/{id}"),
            component: id.to_owned(),
            resource_type,
            sort: 0,
            icon: String::new(),
            is_leaf,
            is_route: 0,
            perms: String::new(),
            status: 1,
            created_ms: 0,
            updated_ms: 0,
        }
    }

    #[test]
    fn menus_make_a_tree_without_buttons_orphans_and_rings() {
        let tree = menus(vec![
            row("root", "", 0, false),
            row("a", "root", 1, true),
            row("b", "root", 1, false),
            row("button", "b", 2, true),
            row("orphan", "nobody", 1, true),
            row("x", "y", 1, false),
            row("y", "x", 1, false),
        ]);
        assert_eq!(tree.len(), 1);
        let below = tree[0].children.as_deref().unwrap();
        let ids: Vec<_> = below.iter().map(|menu| menu.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(below[0].children, None);
        assert_eq!(below[1].children, Some(Vec::new()));
    }
}
