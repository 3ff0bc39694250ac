//! The operation log: one line per write, in the same transaction.

use longmen_db::{UnitOfWork, repository::operation_log};

use crate::error::ApiResult;

/// What kind of object a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(dead_code, reason = "endpoints of other resources use the rest")]
pub(crate) enum Kind {
    Dict,
    MetaData,
    Namespace,
    NamespacePlugin,
    Plugin,
    PluginHandle,
    Resource,
    Role,
    Rule,
    Selector,
    Upstream,
    User,
}

impl Kind {
    /// The word in the text.
    const fn word(self) -> &'static str {
        match self {
            Self::Dict => "dict",
            Self::MetaData => "meta data",
            Self::Namespace => "namespace",
            Self::NamespacePlugin => "namespace-plugin",
            Self::Plugin => "plugin",
            Self::PluginHandle => "plugin-handle",
            Self::Resource => "resource",
            Self::Role => "role",
            Self::Rule => "rule",
            Self::Selector => "selector",
            Self::Upstream => "discovery-upstream",
            Self::User => "user",
        }
    }

    /// The word in the type of creations and updates.
    const fn type_name(self) -> &'static str {
        match self {
            Self::Dict => "Dict",
            Self::MetaData => "MetaData",
            Self::Namespace => "Namespace",
            Self::NamespacePlugin | Self::Plugin => "Plugin",
            Self::PluginHandle => "PluginHandle",
            Self::Resource => "Resource",
            Self::Role => "Role",
            Self::Rule => "Rule",
            Self::Selector => "Selector",
            Self::Upstream => "LocalDiscoveryUpstream",
            Self::User => "User",
        }
    }

    /// The word in the type of deletions, which two kinds spell in their own way.
    const fn deleted_type_name(self) -> &'static str {
        match self {
            Self::PluginHandle => "Plugin-Handle",
            Self::MetaData => "Meta_Data",
            other => other.type_name(),
        }
    }
}

/// An object was made.
pub(crate) async fn created(uow: &mut UnitOfWork, kind: Kind, name: &str) -> ApiResult<()> {
    let context = format!("the {} [{name}] is create", kind.word());
    let operation_type = format!("CREATE:{}", kind.type_name());
    Ok(operation_log::insert(uow, "green", &operation_type, &context).await?)
}

/// An object was changed; `what` lists `member[old => new]`, or is empty.
pub(crate) async fn updated(
    uow: &mut UnitOfWork,
    kind: Kind,
    name: &str,
    what: &str,
) -> ApiResult<()> {
    let context = format!("the {} [{name}] is update : {what}", kind.word());
    let operation_type = format!("UPDATE:{}", kind.type_name());
    Ok(operation_log::insert(uow, "#CC6600", &operation_type, &context).await?)
}

/// Objects were deleted.
pub(crate) async fn deleted(uow: &mut UnitOfWork, kind: Kind, names: &[&str]) -> ApiResult<()> {
    if names.is_empty() {
        return Ok(());
    }
    let context = format!("the {}[{}] is delete", kind.word(), names.join(","));
    let operation_type = format!("DELETE:{}", kind.deleted_type_name());
    Ok(operation_log::insert(uow, "red", &operation_type, &context).await?)
}

/// Lists what differs, as [`updated`] takes it.
#[derive(Debug, Default)]
pub(crate) struct Differences(String);

impl Differences {
    /// Adds a member if its values differ.
    pub(crate) fn of<T: PartialEq + ToString>(mut self, member: &str, old: T, new: T) -> Self {
        if old != new {
            self.0.push_str(&format!("{member}[{} => {}] ", old.to_string(), new.to_string()));
        }
        self
    }

    /// The list, or a word that says there is nothing in it.
    pub(crate) fn text(self) -> String {
        if self.0.is_empty() { "nothing".to_owned() } else { self.0 }
    }
}
