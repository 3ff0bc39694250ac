//! Bodies that selectors and rules share, member by member.

use longmen_core::model::Condition;
use longmen_db::Keyword;
use longmen_db::repository::NewCondition;
use longmen_db::repository::conditioned::ObjectFilter;

use crate::api::condition::{ConditionRequest, keep_ids};
use crate::extract::RequestBody;

/// A body that creates or changes a selector or rule.
pub(in crate::api) trait ObjectRequest: RequestBody {
    /// The one that the body names, if it names one.
    fn id(&self) -> Option<&str>;

    /// The members that both have, as they are stored.
    ///
    /// # Errors
    /// A match mode that is none; the refusal is ours.
    fn common(&self, match_mode: i32) -> Result<CommonDraft, String>;
}

/// What a search of selectors or rules is narrowed by.
pub(in crate::api) trait Narrow {
    /// As the store takes it.
    fn filter(self, granted_to: Option<String>) -> ObjectFilter;
}

/// The members that both have, once the required ones are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct CommonDraft {
    /// The namespace.
    pub(in crate::api) namespace_id: String,
    /// Name.
    pub(in crate::api) name: String,
    /// 0 = all conditions, 1 = any.
    pub(in crate::api) match_mode: i32,
    /// Precedence.
    pub(in crate::api) sort: i32,
    /// Whether it takes part in matching.
    pub(in crate::api) enabled: bool,
    /// Whether a match is logged.
    pub(in crate::api) logged: bool,
    /// Asks stock gateways not to cache its matches.
    pub(in crate::api) match_restful: bool,
    /// Settings of the plugin.
    pub(in crate::api) handle: Option<String>,
    /// Ids that were sent, and the conditions as they are stored.
    pub(in crate::api) conditions: Vec<(Option<String>, Condition)>,
}

impl CommonDraft {
    /// The conditions alone.
    pub(in crate::api) fn condition_list(&self) -> Vec<Condition> {
        self.conditions.iter().map(|(_, condition)| condition.clone()).collect()
    }

    /// The conditions to store. Of the ids that were sent only those in `own` are kept: another
    /// object's condition is not taken over.
    pub(in crate::api) fn new_conditions(&self, own: &[String]) -> Vec<NewCondition> {
        keep_ids(&self.conditions, own)
    }
}

/// Refuses a match mode that is none.
///
/// # Errors
/// Field, value and expectation; ours.
pub(in crate::api) fn check_match_mode(match_mode: i32) -> Result<(), String> {
    if (0..=1).contains(&match_mode) {
        return Ok(());
    }
    Err(format!("matchMode: {match_mode} is none; expected 0 (and) or 1 (or)"))
}

/// The conditions of a body with the ids that were sent.
pub(in crate::api) fn drafted(
    conditions: Option<&[ConditionRequest]>,
) -> Vec<(Option<String>, Condition)> {
    let conditions = conditions.unwrap_or_default();
    conditions.iter().map(|one| (one.id.clone(), one.to_condition())).collect()
}

/// Keywords of a search.
pub(in crate::api) fn keyword(text: Option<&str>) -> Keyword {
    Keyword::parse(text.unwrap_or_default())
}

/// A body that creates or changes one, with the members that both have and its own ones, and the
/// name of the member with the conditions.
macro_rules! object_request {
    (
        $(#[$meta:meta])*
        $name:ident { $($own:tt)* }
        $(#[$conditions_meta:meta])*
        $conditions:ident
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            /// The one to change; one that exists makes a create an update.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub id: Option<String>,
            /// Its name; need not be unique.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub name: Option<String>,
            /// 0 = all conditions, 1 = any.
            #[serde(default, deserialize_with = "lenient::opt_i32")]
            pub match_mode: Option<i32>,
            /// Precedence, ascending.
            #[serde(default, deserialize_with = "lenient::opt_i32")]
            pub sort: Option<i32>,
            /// Whether it takes part in matching.
            #[serde(default, deserialize_with = "lenient::opt_bool")]
            pub enabled: Option<bool>,
            /// Whether a match is logged; the reference spells it so.
            #[serde(rename = "loged", default, deserialize_with = "lenient::opt_bool")]
            pub logged: Option<bool>,
            /// Asks stock gateways not to cache its matches.
            #[serde(default, deserialize_with = "lenient::opt_bool")]
            pub match_restful: Option<bool>,
            /// Settings of the plugin, JSON text.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub handle: Option<String>,
            /// The namespace it belongs to.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub namespace_id: Option<String>,
            $($own)*
            $(#[$conditions_meta])*
            pub $conditions: Option<Vec<$crate::api::condition::ConditionRequest>>,
        }

        impl $crate::api::conditioned::request::ObjectRequest for $name {
            fn id(&self) -> Option<&str> {
                $crate::api::common::filled(self.id.as_deref())
            }

            fn common(
                &self,
                match_mode: i32,
            ) -> Result<$crate::api::conditioned::request::CommonDraft, String> {
                use $crate::api::conditioned::request::{CommonDraft, check_match_mode, drafted};
                check_match_mode(match_mode)?;
                Ok(CommonDraft {
                    namespace_id: self.namespace_id.clone().unwrap_or_default(),
                    name: self.name.clone().unwrap_or_default(),
                    match_mode,
                    sort: self.sort.unwrap_or_default(),
                    enabled: self.enabled.unwrap_or_default(),
                    logged: self.logged.unwrap_or_default(),
                    match_restful: self.match_restful.unwrap_or_default(),
                    handle: self.handle.clone(),
                    conditions: drafted(self.$conditions.as_deref()),
                })
            }
        }
    };
}

/// What a search is narrowed by, and the member with the ids of what they belong to.
macro_rules! narrow {
    (
        $(#[$meta:meta])*
        $name:ident
        $(#[$owners_meta:meta])*
        $owners:ident as $place:literal
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            /// Text in the name; what follows a `!` must not be in it.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub keyword: Option<String>,
            /// Whether they are enabled.
            #[serde(default, deserialize_with = "lenient::opt_bool")]
            pub switch_status: Option<bool>,
            $(#[$owners_meta])*
            pub $owners: Option<Vec<String>>,
            /// Their namespace.
            #[serde(default, deserialize_with = "lenient::opt_string")]
            pub namespace_id: Option<String>,
        }

        impl $crate::api::conditioned::request::Narrow for $name {
            fn filter(
                self,
                granted_to: Option<String>,
            ) -> longmen_db::repository::conditioned::ObjectFilter {
                longmen_db::repository::conditioned::ObjectFilter {
                    namespace_id: self.namespace_id.filter(|id| !id.is_empty()),
                    owner_ids: self.$owners.unwrap_or_default(),
                    keyword: $crate::api::conditioned::request::keyword(self.keyword.as_deref()),
                    enabled: self.switch_status,
                    granted_to,
                }
            }
        }

        impl RequestBody for $crate::api::search::SearchRequest<$name> {
            async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
                self.rules(rules);
                let owners = self.condition.as_ref().and_then(|narrow| narrow.$owners.as_deref());
                rules.max_ids($place, owners, longmen_db::MAX_FILTER_IDS);
                Ok(())
            }
        }
    };
}

pub(in crate::api) use {narrow, object_request};
