//! The database, looked at behind the admins' backs by `psql`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::admin_api::DEFAULT_NAMESPACE;

/// Has half of the notifications lost: what stands in front of the server's own function.
const LOSE: &str = "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS \
     $$ BEGIN IF random() < 0.5 THEN PERFORM pg_catalog.pg_notify($1, $2); END IF; END $$";

const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
     WHERE datname = current_database() AND query ILIKE 'LISTEN%'";

/// A database of this measurement.
#[derive(Debug)]
pub(super) struct Database {
    user: String,
    password: String,
    /// `host:port`.
    address: String,
    name: String,
    /// The folder of the server that was started for it.
    own: Option<PathBuf>,
}

impl Database {
    /// Makes one on `server`, or on a server that is started for it.
    pub(super) fn create(server: Option<&str>, lose: bool) -> anyhow::Result<Self> {
        let (url, own) = match server {
            Some(url) => (url.to_owned(), None),
            None => {
                let folder =
                    std::env::temp_dir().join(format!("longmen-admins-pg-{}", std::process::id()));
                let started = script().arg("start").arg(&folder).output();
                let started = started.context("run scripts/postgres.sh")?;
                let told = String::from_utf8_lossy(&started.stderr);
                ensure!(started.status.success(), "PostgreSQL does not start: {told}");
                (String::from_utf8(started.stdout)?.trim().to_owned(), Some(folder))
            }
        };
        let wrong = "the address is not of the form postgres://user:password@host:port/database";
        let (_, rest) = url.split_once("://").context(wrong)?;
        let (login, place) = rest.rsplit_once('@').context(wrong)?;
        let (user, password) = login.split_once(':').context(wrong)?;
        let (address, any) = place.split_once('/').context(wrong)?;
        let mut database = Self {
            user: user.to_owned(),
            password: password.to_owned(),
            address: address.to_owned(),
            name: any.to_owned(),
            own,
        };
        let name = format!("admins_{}", std::process::id());
        database.sql(&format!("CREATE DATABASE {name}"))?;
        database.name = name;
        if lose {
            database.sql(LOSE)?;
            let name = &database.name;
            database
                .sql(&format!("ALTER DATABASE {name} SET search_path TO public, pg_catalog"))?;
        }
        Ok(database)
    }

    pub(super) fn jdbc(&self) -> String {
        format!("jdbc:postgresql://{}/{}", self.address, self.name)
    }

    pub(super) fn user(&self) -> &str {
        &self.user
    }

    pub(super) fn password(&self) -> &str {
        &self.password
    }

    /// The ids of the rules of a selector, by their names.
    pub(super) fn rules(&self, selector: &str) -> anyhow::Result<Vec<String>> {
        self.sql(&format!(
            "SELECT id FROM rule WHERE selector_id = '{selector}' ORDER BY rule_name"
        ))
    }

    /// The id of the only selector of this measurement.
    pub(super) fn selector(&self) -> anyhow::Result<String> {
        let ids = self.sql("SELECT id FROM selector WHERE selector_name = 'admins'")?;
        ids.into_iter().next().context("the selector is gone")
    }

    /// The epoch and the version of the default namespace.
    pub(super) fn version(&self) -> anyhow::Result<(String, u64)> {
        let rows = self.sql(&format!(
            "SELECT (SELECT value FROM install WHERE name = 'epoch'), version FROM config_version \
             WHERE namespace_id = '{DEFAULT_NAMESPACE}'"
        ))?;
        let row = rows.first().context("no version yet")?;
        let (epoch, version) = row.split_once('|').context("two columns")?;
        Ok((epoch.to_owned(), version.parse()?))
    }

    /// The stored rules, and selectors, as objects; in the words of the history.
    pub(super) fn stored(&self) -> anyhow::Result<Vec<Value>> {
        let of = |table: &str, extra: &str| {
            format!(
                "SELECT json_build_object('kind', '{}', 'id', t.id, 'name', t.{table}_name, \
                     'sort', t.sort_code, 'enabled', t.enabled, 'matchMode', t.match_mode, \
                     'handle', t.handle, {extra} 'conditions', COALESCE((SELECT json_agg(\
                     json_build_array(c.param_type, c.operator, c.param_value) ORDER BY c.position) \
                     FROM {table}_condition c WHERE c.{table}_id = t.id), '[]'::json)) \
                 FROM {table} t WHERE t.namespace_id = '{DEFAULT_NAMESPACE}'",
                table.to_uppercase()
            )
        };
        let mut rows = self.objects(&of("rule", "'selectorId', t.selector_id,"))?;
        rows.extend(self.objects(&of("selector", ""))?);
        Ok(rows)
    }

    /// The whole history of the namespace, in order.
    pub(super) fn history(&self) -> anyhow::Result<Vec<Value>> {
        self.objects(&format!(
            "SELECT json_build_object('version', version, 'position', position, 'kind', kind, \
                 'id', object_id, 'operation', operation, 'before', before_json::json, \
                 'after', after_json::json) \
             FROM config_change WHERE namespace_id = '{DEFAULT_NAMESPACE}' \
               AND kind IN ('RULE', 'SELECTOR') ORDER BY version, position"
        ))
    }

    /// The versions that the history has, and the highest one: without gaps they are the same number.
    pub(super) fn versions(&self) -> anyhow::Result<(u64, u64)> {
        let rows = self.sql(&format!(
            "SELECT count(DISTINCT version), max(version) FROM config_change \
             WHERE namespace_id = '{DEFAULT_NAMESPACE}'"
        ))?;
        let (count, most) = rows.first().and_then(|row| row.split_once('|')).context("a count")?;
        Ok((count.parse()?, most.parse()?))
    }

    /// Cuts the connections that listen. Out: how many.
    pub(super) fn cut_listeners(&self) -> anyhow::Result<u64> {
        let cut = self.sql(CUT)?;
        Ok(cut.first().and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    fn objects(&self, sql: &str) -> anyhow::Result<Vec<Value>> {
        self.sql(sql)?.iter().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    fn sql(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        let (host, port) = self.address.rsplit_once(':').unwrap_or((&self.address, "5432"));
        // Not as an argument: those show in the list of processes.
        let answer = Command::new("psql")
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .env("PGUSER", &self.user)
            .env("PGPASSWORD", &self.password)
            .env("PGHOST", host)
            .env("PGPORT", port)
            .env("PGDATABASE", &self.name)
            .output()
            .context("run psql")?;
        ensure!(answer.status.success(), "psql: {}", String::from_utf8_lossy(&answer.stderr));
        Ok(String::from_utf8(answer.stdout)?.lines().map(str::to_owned).collect())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(folder) = &self.own {
            // A server that was stopped by somebody else needs nothing.
            let _ = script().arg("stop").arg(folder).output();
        }
    }
}

fn script() -> Command {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    Command::new(root.join("scripts").join("postgres.sh"))
}
