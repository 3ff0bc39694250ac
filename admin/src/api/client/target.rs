//! The plugins and selectors that a registration is for.

use longmen_core::condition::{Compiler, validate};
use longmen_core::model::{Condition, Level, Rule, Selector};
use longmen_db::repository::{
    conditioned, data_permission, namespace_plugin, plugin, rule, selector,
};
use longmen_db::{Operation, UnitOfWork};

use super::condition;
use crate::api::conditioned::write::changed;
use crate::audit::{self, Kind as Audited};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};

/// A plugin of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Linked {
    /// Id of the template.
    id: String,
    /// Its name.
    name: String,
}

/// A unit of work of one registration, and what it keeps others out of.
pub(super) struct Target<'a> {
    context: &'a Context,
    namespace_id: &'a str,
    /// The unit.
    pub(super) uow: UnitOfWork,
}

/// A failure that another writer brought about is to be tried again, not left out.
pub(super) fn inside(error: longmen_db::Error) -> ApiError {
    ApiError::Internal(error.into())
}

impl<'a> Target<'a> {
    /// Begins a unit of work for `client` and holds the plugins of the namespace until its end, so
    /// that no other registration for them is between looking for something and making it. Out: also
    /// those of the plugins that the namespace has; the first must be.
    ///
    /// # Errors
    /// The first plugin is not in the namespace; failures of the store.
    pub(super) async fn hold(
        context: &'a Context,
        client: &str,
        namespace_id: &'a str,
        plugins: &[&str],
    ) -> ApiResult<(Self, Vec<Linked>)> {
        let mut uow = context.begin_for_client(client).await?;
        let (mut linked, mut links) = (Vec::new(), Vec::new());
        for name in plugins {
            let Some(row) = plugin::find_by_name(&mut uow, name).await? else { continue };
            let link = namespace_plugin::find_by_plugin(&mut uow, namespace_id, &row.id).await?;
            if let Some(link) = link {
                links.push(link.id);
                linked.push(Linked { id: row.id, name: row.name });
            }
        }
        let held = namespace_plugin::find_many_for_update(&mut uow, &links).await?;
        // One may have gone meanwhile.
        linked.retain(|plugin| held.iter().any(|link| link.plugin_id == plugin.id));
        let first = plugins.first().copied().unwrap_or_default();
        if linked.first().is_none_or(|plugin| plugin.name != first) {
            return Err(ApiError::refused(format!(
                "{first} plugin not enabled for current namespace or plugin not exist for \
                 namespaceId: {namespace_id}"
            )));
        }
        Ok((Self { context, namespace_id, uow }, linked))
    }

    /// The selectors of a name in the plugins, made where they are missing. Those that are there are
    /// held, in the order of their ids, as a batch of a person holds them.
    ///
    /// # Errors
    /// A name that gives no usable condition; failures of the store.
    pub(super) async fn selectors(
        &mut self,
        plugins: &[Linked],
        name: &str,
    ) -> ApiResult<Vec<Selector>> {
        let mut found = Vec::with_capacity(plugins.len());
        for plugin in plugins {
            found.push(self.find_selector(plugin, name).await?);
        }
        let ids: Vec<String> = found.iter().flatten().map(|one| one.id.clone()).collect();
        let held = conditioned::find_many_for_update::<Selector>(&mut self.uow, &ids).await?;
        let mut selectors = Vec::with_capacity(plugins.len());
        for (plugin, found) in plugins.iter().zip(found) {
            let id = found.map(|one| one.id).unwrap_or_default();
            let there = held.iter().find(|row| row.object.id == id);
            selectors.push(match there {
                Some(row) => row.object.clone(),
                None => self.make_selector(plugin, name).await?,
            });
        }
        Ok(selectors)
    }

    /// The selector of a name, if there is one.
    ///
    /// # Errors
    /// Failures of the store.
    pub(super) async fn find_selector(
        &mut self,
        plugin: &Linked,
        name: &str,
    ) -> ApiResult<Option<Selector>> {
        let namespace = self.namespace_id;
        let found = selector::find_named(&mut self.uow, namespace, &plugin.id, name).await?;
        Ok(found.map(|row| row.object))
    }

    async fn make_selector(&mut self, plugin: &Linked, name: &str) -> ApiResult<Selector> {
        let conditions = vec![condition::below(name)];
        self.check(&conditions)?;
        let made = Selector {
            plugin_id: Some(plugin.id.clone()),
            plugin_name: plugin.name.clone(),
            match_mode: 0,
            selector_type: 1,
            logged: true,
            continued: true,
            handle: Some(String::new()),
            condition_list: Some(conditions.clone()),
            before_condition_list: None,
            match_restful: false,
            id: self.uow.next_id()?,
            name: Some(name.to_owned()),
            enabled: true,
            sort: Some(1),
            namespace_id: Some(self.namespace_id.to_owned()),
        };
        let conditions: Vec<_> = conditions.into_iter().map(Into::into).collect();
        selector::insert(&mut self.uow, &made, &conditions).await.map_err(inside)?;
        self.grant(Level::Selector, &made.id).await?;
        self.uow.record(changed(&made, Operation::Create).after(&made));
        audit::created(&mut self.uow, Audited::Selector, name).await?;
        Ok(made)
    }

    /// Makes a rule in a selector, unless it has one of that name: whatever a person made of it stays.
    ///
    /// # Errors
    /// A condition that no gateway could use; failures of the store.
    pub(super) async fn ensure_rule(
        &mut self,
        owner: &Selector,
        name: &str,
        condition: Condition,
        handle: &str,
    ) -> ApiResult<()> {
        if rule::is_named(&mut self.uow, &owner.id, name).await? {
            return Ok(());
        }
        let conditions = vec![condition];
        self.check(&conditions)?;
        let made = Rule {
            plugin_name: owner.plugin_name.clone(),
            selector_id: owner.id.clone(),
            match_mode: 0,
            logged: true,
            handle: Some(handle.to_owned()),
            condition_list: Some(conditions.clone()),
            before_condition_list: None,
            match_restful: false,
            id: self.uow.next_id()?,
            name: Some(name.to_owned()),
            enabled: true,
            sort: Some(1),
            namespace_id: Some(self.namespace_id.to_owned()),
        };
        let conditions: Vec<_> = conditions.into_iter().map(Into::into).collect();
        rule::insert(&mut self.uow, &made, &conditions).await.map_err(inside)?;
        self.grant(Level::Rule, &made.id).await?;
        self.uow.record(changed(&made, Operation::Create).after(&made));
        audit::created(&mut self.uow, Audited::Rule, name).await
    }

    /// Commits, if there is anything to.
    ///
    /// # Errors
    /// Failures of the store.
    pub(super) async fn commit(self) -> ApiResult<()> {
        if self.uow.changes().is_empty() {
            return Ok(());
        }
        self.uow.commit().await?;
        Ok(())
    }

    async fn grant(&mut self, level: Level, id: &str) -> ApiResult<()> {
        let user = &self.context.caller()?.user_id;
        let namespace = self.namespace_id;
        Ok(data_permission::grant_created(&mut self.uow, user, namespace, level, id).await?)
    }

    fn check(&self, conditions: &[Condition]) -> ApiResult<()> {
        let zone = self.context.state().store().time_zone().clone();
        let faults = validate(&mut Compiler::new(zone), conditions);
        faults.into_iter().next().map_or(Ok(()), |fault| Err(ApiError::refused(fault.to_string())))
    }
}
