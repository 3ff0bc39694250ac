//! An admin of this process, and a client to call it.

use std::{net::TcpListener, time::Duration};

use http::HeaderMap;
use longmen_admin::{Admin, RunningAdmin, config::AdminConfig};
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

    pub(crate) async fn with(change: impl FnOnce(&mut AdminConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = AdminConfig {
            listen: "127.0.0.1:0".to_owned(),
            data_dir: folder.path().to_owned(),
            initial_password: Some(PASSWORD.to_owned()),
            ..AdminConfig::default()
        };
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

    pub(crate) async fn stop(self) {
        self.admin.stop().await;
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
