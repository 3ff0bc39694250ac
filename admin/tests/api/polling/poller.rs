//! A gateway that polls, as a test drives it.

use std::collections::BTreeMap;
use std::time::Duration;

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::Group;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::scene::Scene;
use crate::support::TestAdmin;

/// No answer takes longer, or it never comes.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// What a gateway has of each group: the digest and the time.
pub(super) type Has = BTreeMap<&'static str, (String, i64)>;

/// A gateway.
#[derive(Debug, Clone)]
pub(super) struct Poller {
    pub(super) base: String,
    pub(super) namespace: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) client: reqwest::Client,
    pub(super) has: Has,
}

impl Poller {
    pub(super) fn new(admin: &TestAdmin, token: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().unwrap();
        Self {
            base: format!("http://{}", admin.running().addr),
            namespace: DEFAULT_NAMESPACE.to_owned(),
            headers: vec![("X-Access-Token", token.to_owned()), ("X-Real-PORT", "9195".to_owned())],
            client,
            has: Has::new(),
        }
    }

    pub(super) async fn of(scene: &Scene) -> Self {
        let mut poller = Self::new(&scene.admin, scene.token());
        poller.fetch_all().await;
        poller
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.base);
        let request = self.client.request(method.parse().unwrap(), url);
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }

    /// Fetches groups, and keeps their digests and times. The data of the answer.
    pub(super) async fn fetch(&mut self, groups: &[&'static str]) -> Value {
        let keys: Vec<String> = groups.iter().map(|group| format!("groupKeys={group}")).collect();
        let path = format!("/configs/fetch?{}&namespaceId={}", keys.join("&"), self.namespace);
        let response = self.request("GET", &path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let mut answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let data = answer["data"].take();
        for group in groups {
            let one = &data[group];
            let md5 = one["md5"].as_str().unwrap().to_owned();
            self.has.insert(group, (md5, one["lastModifyTime"].as_i64().unwrap()));
        }
        data
    }

    pub(super) async fn fetch_all(&mut self) -> Value {
        let all: Vec<&'static str> = Group::ALL.iter().map(|group| group.name()).collect();
        self.fetch(&all).await
    }

    /// The path of a question.
    pub(super) fn question(&self) -> String {
        let known: Vec<String> =
            self.has.iter().map(|(group, (md5, ms))| format!("{group}={md5},{ms}")).collect();
        format!("/configs/listener?{}&namespaceId={}", known.join("&"), self.namespace)
    }

    /// Asks what has changed; the names.
    pub(super) async fn ask(&self) -> Vec<String> {
        let response = self.request("POST", &self.question()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        serde_json::from_value(answer["data"].clone()).unwrap()
    }

    /// Asks, and returns once the question is held. Only one at a time per gateway.
    pub(super) async fn ask_and_be_held(&self, admin: &TestAdmin) -> JoinHandle<Vec<String>> {
        let before = held(admin);
        let asking = tokio::spawn({
            let poller = self.clone();
            async move { poller.ask().await }
        });
        until(|| held(admin) > before).await;
        asking
    }
}

/// How many questions are held.
pub(super) fn held(admin: &TestAdmin) -> usize {
    admin.running().state().publisher().held()
}

/// Waits for something that an event elsewhere brings about.
pub(super) async fn until(mut there: impl FnMut() -> bool) {
    let waiting = async {
        while !there() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("it happens in time");
}

/// The answer of a question that is held.
pub(super) async fn answer(asking: JoinHandle<Vec<String>>) -> Vec<String> {
    tokio::time::timeout(DEADLINE, asking).await.expect("an answer in time").unwrap()
}
