//! The rows that a new installation starts with.
//!
//! They stand in the folder `seed`, one JSON object a line, with the ids that stock installations
//! have where consoles and clients know them; the other ids are ours.
//!
//! Source: the initial data of ShenYu 2.7.1 (PostgreSQL and MySQL taken together, without double
//! form fields).

use longmen_core::model::DEFAULT_NAMESPACE;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::repository::CountRow;
use crate::repository::role::{DEFAULT_ROLE, SUPER_ROLE};
use crate::statement::{execute, fetch_one, here, on_conn, values};
use crate::store::Store;
use crate::tx::{Actor, UnitOfWork};
use crate::{Error, Result};

/// Rows of one `INSERT`.
const ROWS: usize = 200;

const PLUGINS: &str = include_str!("../seed/plugins.jsonl");
const PLUGIN_HANDLES: &str = include_str!("../seed/plugin_handles.jsonl");
const DICTIONARY: &str = include_str!("../seed/dictionary.jsonl");
const RESOURCES: &str = include_str!("../seed/resources.jsonl");

/// Id of the user `admin`.
const ADMIN: &str = "1";

/// What the seed needs from the installation.
#[derive(Clone)]
pub struct SeedOptions {
    /// Hash of the first password of the user `admin`, as [`UserRow::password`] takes it.
    ///
    /// [`UserRow::password`]: crate::repository::user::UserRow::password
    pub admin_password_hash: String,
}

// By hand, so that the hash reaches no log.
impl std::fmt::Debug for SeedOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeedOptions").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct PluginSeed {
    id: String,
    name: String,
    role: String,
    sort: i32,
    enabled: bool,
    config: Option<String>,
    link: LinkSeed,
}

/// The link to the default namespace; what is absent is as in the template.
#[derive(Deserialize)]
struct LinkSeed {
    id: String,
    sort: Option<i32>,
    enabled: Option<bool>,
    config: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PluginHandleSeed {
    id: String,
    plugin: String,
    #[serde(rename = "type")]
    handle_type: i32,
    sort: i32,
    field: String,
    label: Option<String>,
    data_type: i32,
    ext: Option<String>,
}

#[derive(Deserialize)]
struct DictSeed {
    id: String,
    #[serde(rename = "type")]
    dict_type: String,
    code: String,
    name: String,
    value: String,
    desc: String,
    sort: i32,
    enabled: bool,
}

#[derive(Deserialize)]
struct ResourceSeed {
    id: String,
    parent: String,
    title: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    component: String,
    #[serde(rename = "type")]
    resource_type: i32,
    sort: i32,
    icon: String,
    #[serde(default)]
    perms: String,
}

impl Store {
    /// Whether [`Store::seed`] has been done on this database.
    ///
    /// # Errors
    /// The database's.
    pub async fn is_seeded(&self) -> Result<bool> {
        let mut tx = self.read().await?;
        let row =
            fetch_one!(tx, CountRow, "SELECT COUNT(*) AS n FROM install WHERE name = 'seeded'",)?;
        Ok(row.n > 0)
    }

    /// Writes the rows that a new installation starts with, all or none. What was changed or
    /// deleted since never comes back.
    ///
    /// Out: whether this call wrote them; of several admins that start at once, one does.
    ///
    /// # Errors
    /// The database's.
    pub async fn seed(&self, options: &SeedOptions) -> Result<bool> {
        let mut uow = self.begin(Actor::system()).await?;
        let now_ms = uow.now_ms();
        // A second admin waits here for the first, and then finds the row.
        let first = execute!(
            uow,
            "INSERT INTO install (name, value) VALUES ('seeded', $1) ON CONFLICT (name) DO NOTHING",
            now_ms.to_string(),
        )?;
        if first == 0 {
            return Ok(false);
        }
        let plugins: Vec<PluginSeed> = read("plugins", PLUGINS)?;
        namespace_and_users(&mut uow, &options.admin_password_hash).await?;
        insert_plugins(&mut uow, &plugins).await?;
        insert_links(&mut uow, &plugins).await?;
        insert_handles(&mut uow, &plugins).await?;
        insert_dictionary(&mut uow).await?;
        insert_resources(&mut uow).await?;
        uow.commit().await?;
        Ok(true)
    }
}

fn read<T: DeserializeOwned>(table: &'static str, text: &str) -> Result<Vec<T>> {
    text.lines()
        .enumerate()
        .map(|(line, text)| {
            serde_json::from_str(text).map_err(|error| Error::Corrupt {
                table,
                id: format!("seed line {}", line + 1),
                reason: error.to_string(),
            })
        })
        .collect()
}

/// Inserts rows by statements of up to [`ROWS`] rows each; the closure binds one row.
macro_rules! insert_rows {
    ($uow:expr, $head:expr, $columns:expr, $rows:expr, |$query:ident, $row:ident| $bind:expr) => {
        for chunk in $rows.chunks(ROWS) {
            let sql = values($head, chunk.len(), $columns);
            on_conn!($uow, |conn| {
                let mut $query = sqlx::query(sql);
                for $row in chunk {
                    $query = $bind;
                }
                $query.execute(conn).await.map(|_| ())
            })
            .map_err(|source| Error::sql(here!(), source))?;
        }
    };
}

async fn namespace_and_users(uow: &mut UnitOfWork, password: &str) -> Result<()> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO namespace (id, namespace_id, name, description, created_ms, updated_ms)
         VALUES ('1', $1, 'default', 'default-namespace', $2, $2)",
        DEFAULT_NAMESPACE,
        now_ms,
    )?;
    execute!(
        uow,
        "INSERT INTO dashboard_user (id, user_name, password, role, enabled, created_ms, updated_ms)
         VALUES ($1, 'admin', $2, 1, TRUE, $3, $3)",
        ADMIN,
        password,
        now_ms,
    )?;
    execute!(
        uow,
        "INSERT INTO role (id, role_name, description, created_ms, updated_ms)
         VALUES ($1, 'super', 'Administrator', $3, $3), ($2, 'default', 'Standard', $3, $3)",
        SUPER_ROLE,
        DEFAULT_ROLE,
        now_ms,
    )?;
    execute!(
        uow,
        "INSERT INTO user_role (id, user_id, role_id, created_ms, updated_ms)
         VALUES ('1351007709096976384', $1, $2, $3, $3)",
        ADMIN,
        SUPER_ROLE,
        now_ms,
    )?;
    Ok(())
}

async fn insert_plugins(uow: &mut UnitOfWork, plugins: &[PluginSeed]) -> Result<()> {
    let now_ms = uow.now_ms();
    insert_rows!(
        uow,
        "INSERT INTO plugin (id, name, config, role, sort, enabled, created_ms, updated_ms) VALUES",
        8,
        plugins,
        |query, row| query
            .bind(row.id.as_str())
            .bind(row.name.as_str())
            .bind(row.config.as_deref())
            .bind(row.role.as_str())
            .bind(row.sort)
            .bind(row.enabled)
            .bind(now_ms)
            .bind(now_ms)
    );
    Ok(())
}

async fn insert_links(uow: &mut UnitOfWork, plugins: &[PluginSeed]) -> Result<()> {
    let now_ms = uow.now_ms();
    insert_rows!(
        uow,
        "INSERT INTO namespace_plugin_rel (id, namespace_id, plugin_id, config, sort, enabled,
             created_ms, updated_ms) VALUES",
        8,
        plugins,
        |query, row| query
            .bind(row.link.id.as_str())
            .bind(DEFAULT_NAMESPACE)
            .bind(row.id.as_str())
            .bind(row.link.config.as_deref().or(row.config.as_deref()))
            .bind(row.link.sort.unwrap_or(row.sort))
            .bind(row.link.enabled.unwrap_or(row.enabled))
            .bind(now_ms)
            .bind(now_ms)
    );
    Ok(())
}

async fn insert_handles(uow: &mut UnitOfWork, plugins: &[PluginSeed]) -> Result<()> {
    let now_ms = uow.now_ms();
    let mut rows = Vec::new();
    for row in read::<PluginHandleSeed>("plugin_handle", PLUGIN_HANDLES)? {
        let plugin = plugins.iter().find(|plugin| plugin.name == row.plugin).ok_or_else(|| {
            Error::Corrupt {
                table: "plugin_handle",
                id: row.id.clone(),
                reason: format!("there is no plugin {}", row.plugin),
            }
        })?;
        rows.push((plugin.id.as_str(), row));
    }
    insert_rows!(
        uow,
        "INSERT INTO plugin_handle (id, plugin_id, field, label, data_type, type, sort, ext_obj,
             created_ms, updated_ms) VALUES",
        10,
        rows,
        |query, row| query
            .bind(row.1.id.as_str())
            .bind(row.0)
            .bind(row.1.field.as_str())
            .bind(row.1.label.as_deref())
            .bind(row.1.data_type)
            .bind(row.1.handle_type)
            .bind(row.1.sort)
            .bind(row.1.ext.as_deref())
            .bind(now_ms)
            .bind(now_ms)
    );
    Ok(())
}

async fn insert_dictionary(uow: &mut UnitOfWork) -> Result<()> {
    let now_ms = uow.now_ms();
    let rows: Vec<DictSeed> = read("shenyu_dict", DICTIONARY)?;
    insert_rows!(
        uow,
        "INSERT INTO shenyu_dict (id, type, dict_code, dict_name, dict_value, description, sort,
             enabled, created_ms, updated_ms) VALUES",
        10,
        rows,
        |query, row| query
            .bind(row.id.as_str())
            .bind(row.dict_type.as_str())
            .bind(row.code.as_str())
            .bind(row.name.as_str())
            .bind(row.value.as_str())
            .bind(row.desc.as_str())
            .bind(row.sort)
            .bind(row.enabled)
            .bind(now_ms)
            .bind(now_ms)
    );
    Ok(())
}

/// The tree of menus and buttons, all of it held by the role super.
async fn insert_resources(uow: &mut UnitOfWork) -> Result<()> {
    let now_ms = uow.now_ms();
    let rows: Vec<ResourceSeed> = read("resource", RESOURCES)?;
    insert_rows!(
        uow,
        "INSERT INTO resource (id, parent_id, title, name, url, component, resource_type, sort,
             icon, is_leaf, is_route, perms, status, created_ms, updated_ms) VALUES",
        15,
        rows,
        |query, row| query
            .bind(row.id.as_str())
            .bind(row.parent.as_str())
            .bind(row.title.as_str())
            .bind(row.name.as_str())
            .bind(row.url.as_str())
            .bind(row.component.as_str())
            .bind(row.resource_type)
            .bind(row.sort)
            .bind(row.icon.as_str())
            .bind(row.resource_type == 2)
            .bind(0_i32)
            .bind(row.perms.as_str())
            .bind(1_i32)
            .bind(now_ms)
            .bind(now_ms)
    );
    let grants =
        rows.iter().map(|row| Ok((uow.next_id()?, row.id.as_str()))).collect::<Result<Vec<_>>>()?;
    insert_rows!(
        uow,
        "INSERT INTO permission (id, object_id, resource_id, created_ms, updated_ms) VALUES",
        5,
        grants,
        |query, row| query
            .bind(row.0.as_str())
            .bind(SUPER_ROLE)
            .bind(row.1)
            .bind(now_ms)
            .bind(now_ms)
    );
    Ok(())
}
