//! The menu of a plugin, and its buttons.

use longmen_db::{
    UnitOfWork,
    repository::{
        permission::{self, NewResource},
        role,
    },
};

use crate::error::{ApiError, ApiResult};

/// The menu below which plugins have theirs.
const PLUGIN_MENU: &str = "1346775491550474240";

const TAKEN: &str = "The resource name already exists and can't be added repeatedly!";

/// Makes the menu of `plugin` with its nine buttons, and grants them to the role of super users.
///
/// # Errors
/// There is a menu of this name.
pub(super) async fn create(uow: &mut UnitOfWork, plugin: &str) -> ApiResult<()> {
    if permission::has_menu(uow, plugin).await? {
        return Err(ApiError::refused(TAKEN));
    }
    let menu = NewResource {
        parent_id: PLUGIN_MENU.to_owned(),
        title: plugin.to_owned(),
        name: plugin.to_owned(),
        url: format!("/plug/{plugin}"),
        component: plugin.to_owned(),
        resource_type: 1,
        icon: "block".to_owned(),
        ..NewResource::default()
    };
    let id = insert(uow, &menu).await?;
    for (title, perms) in buttons(plugin) {
        let button = NewResource {
            parent_id: id.clone(),
            title,
            resource_type: 2,
            is_leaf: true,
            perms,
            ..NewResource::default()
        };
        insert(uow, &button).await?;
    }
    Ok(())
}

async fn insert(uow: &mut UnitOfWork, resource: &NewResource) -> ApiResult<String> {
    let id = permission::insert_resource(uow, resource).await?;
    role::grant(uow, role::SUPER_ROLE, &id).await?;
    Ok(id)
}

/// Captions and permission strings of a plugin's buttons.
fn buttons(plugin: &str) -> Vec<(String, String)> {
    let mut buttons = Vec::with_capacity(9);
    for (kind, caption) in [("Selector", "SELECTOR"), ("Rule", "RULE")] {
        for action in ["add", "delete", "edit", "query"] {
            buttons.push((
                format!("SHENYU.BUTTON.PLUGIN.{caption}.{}", action.to_ascii_uppercase()),
                format!("plugin:{plugin}{kind}:{action}"),
            ));
        }
    }
    buttons
        .push(("SHENYU.BUTTON.PLUGIN.SYNCHRONIZE".to_owned(), format!("plugin:{plugin}:modify")));
    buttons
}

#[cfg(test)]
mod tests {
    use super::buttons;

    #[test]
    fn a_plugin_has_nine_buttons() {
        let buttons = buttons("divide");
        assert_eq!(buttons.len(), 9);
        let (title, perms) = &buttons[4];
        assert_eq!(title, "SHENYU.BUTTON.PLUGIN.RULE.ADD");
        assert_eq!(perms, "plugin:divideRule:add");
        assert_eq!(buttons[8].1, "plugin:divide:modify");
    }
}
