//! An admin of this process, and a client to call it.

use std::{
    net::{Ipv4Addr, TcpListener},
    time::Duration,
};

use http::HeaderMap;
use longmen_admin::auth::legacy_hash;
use longmen_admin::{
    Admin, RunningAdmin,
    config::{AdminConfig, StoreConfig},
};
use longmen_core::{config::Secret, test_util::postgres::fresh_database};
use longmen_db::{
    Actor,
    repository::{
        permission, role,
        user::{self, NewUser},
    },
};
use serde_json::Value;
use tempfile::TempDir;

/// The password of `admin` in tests: the one that the recordings use.
pub(crate) const PASSWORD: &str = "123456";

/// No call takes longer, or it hangs.
const CALL_DEADLINE: Duration = Duration::from_secs(20);

/// A running admin with a fresh database, and the folder of its files.
pub(crate) struct TestAdmin {
    admin: RunningAdmin,
    client: reqwest::Client,
    _folder: TempDir,
}

/// The two kinds of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Option<Value>,
}

impl TestAdmin {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// On a fresh database of this kind.
    pub(crate) async fn on(database: Database) -> Self {
        Self::on_with(database, |_| {}).await
    }

    pub(crate) async fn on_with(database: Database, change: impl FnOnce(&mut AdminConfig)) -> Self {
        match database {
            Database::Sqlite => Self::with(change).await,
            Database::Postgres => {
                let made = tokio::task::spawn_blocking(fresh_database).await;
                let url = Secret::new(made.unwrap());
                let store = StoreConfig::Postgres { url };
                Self::with(|config| {
                    config.store = store;
                    change(config);
                })
                .await
            }
        }
    }

    pub(crate) async fn with(change: impl FnOnce(&mut AdminConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = AdminConfig::default();
        config.server.address = Ipv4Addr::LOCALHOST.into();
        config.server.port = 0;
        config.store = StoreConfig::Sqlite { path: folder.path().join("longmen.db") };
        config.sync.token_path = folder.path().join("sync-token");
        config.security.admin_password = Some(Secret::new(PASSWORD));
        config.security.admin_password_path = folder.path().join("admin-password");
        // Tests that register what nobody listens at; those about probes say otherwise.
        config.register.checked = false;
        // Off unless configured.
        config.sync.http.enabled = true;
        change(&mut config);
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let admin = Admin::builder(config).start().await.unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(CALL_DEADLINE).build().unwrap();
        Self { admin, client, _folder: folder }
    }

    pub(crate) const fn running(&self) -> &RunningAdmin {
        &self.admin
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<String>,
    ) -> Answer {
        let url = format!("http://{}{path}", self.admin.addr);
        let mut request = self.client.request(method.parse().unwrap(), url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let json = serde_json::from_str(&text).ok();
        Answer { status, headers, text, json }
    }

    /// A call with a token and, if there is one, a JSON body.
    pub(crate) async fn api(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let headers = [
            ("X-Access-Token".to_owned(), token.to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        let answer = self.call(method, path, &headers, body.map(|body| body.to_string())).await;
        answer.json.unwrap_or_else(|| panic!("{method} {path}: no JSON: {}", answer.text))
    }

    /// The answer to a log-in.
    pub(crate) async fn log_in(&self, user: &str, password: &str, more: &str) -> Value {
        let path = format!("/platform/login?userName={user}&password={password}{more}");
        self.call("GET", &path, &[], None).await.json.unwrap()
    }

    /// The token of a log-in that must succeed.
    pub(crate) async fn token(&self, user: &str, password: &str) -> String {
        let answer = self.log_in(user, password, "").await;
        answer["data"]["token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// A user with a password hash of the reference's kind and no role. Returns the id.
    pub(crate) async fn add_user(&self, name: &str, password: &str) -> String {
        let mut uow = self.admin.state().store().begin(Actor::system()).await.unwrap();
        let new = NewUser {
            user_name: name.to_owned(),
            password: legacy_hash(password),
            role: 1,
            enabled: true,
        };
        let id = user::insert(&mut uow, &new).await.unwrap();
        uow.commit().await.unwrap();
        id
    }

    /// Gives a user a new role that holds these permission strings.
    pub(crate) async fn grant(&self, user_id: &str, role_name: &str, perms: &[&str]) {
        let mut uow = self.admin.state().store().begin(Actor::system()).await.unwrap();
        let role_id = role::insert(&mut uow, role_name, None).await.unwrap();
        for perms in perms {
            let resource = permission::find_resource_by_perms(&mut uow, perms).await.unwrap();
            let resource = resource.unwrap_or_else(|| panic!("nothing carries {perms}"));
            role::grant(&mut uow, &role_id, &resource.id).await.unwrap();
        }
        role::assign(&mut uow, user_id, &role_id).await.unwrap();
        uow.commit().await.unwrap();
    }

    /// Stops it; everything must end by itself and in time.
    pub(crate) async fn stop(self) {
        assert!(self.admin.stop().await, "the admin did not stop well");
    }

    /// Stops it, where something is in the way of a good stop.
    pub(crate) async fn stop_somehow(self) {
        let _ = self.admin.stop().await;
    }
}

/// The addresses that recorded upstreams had; the admin checks that they accept connections.
pub(crate) struct Upstreams(
    #[expect(dead_code, reason = "they only have to be open")] Vec<TcpListener>,
);

impl Upstreams {
    /// Binds them. Another run on this machine may hold them for a while.
    pub(crate) async fn bind() -> Self {
        const PORTS: std::ops::RangeInclusive<u16> = 9481..=9486;
        const PATIENCE: u32 = 120;
        let mut listeners = Vec::new();
        for port in PORTS {
            let mut tried = 0;
            let listener = loop {
                match TcpListener::bind(("127.0.0.1", port)) {
                    Ok(listener) => break listener,
                    Err(error) if tried == PATIENCE => panic!(
                        "the recordings need 127.0.0.1:{port}, still taken after {PATIENCE} s: {error}"
                    ),
                    Err(_) => tried += 1,
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            };
            listeners.push(listener);
        }
        Self(listeners)
    }
}
