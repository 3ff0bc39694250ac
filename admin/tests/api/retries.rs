//! Calls that met something that passes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::Request;
use longmen_admin::config::StoreConfig;
use longmen_admin::context::Context;
use longmen_admin::error::{ApiResult, BUSY};
use longmen_admin::permission::Permission;
use longmen_admin::reply::Reply;
use longmen_admin::router::Routes;
use longmen_core::config::Secret;
use longmen_core::test_util::postgres::fresh_database;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::scene::selector;
use crate::support::{PASSWORD, TestAdmin};

/// The answer of a route whose first calls fail so that they may be made again, and how often it
/// was called.
async fn call(admin: &TestAdmin, failing: u32) -> (Value, u32) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let handler = move |_: Context, (): ()| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let answer: ApiResult<Reply<u32>> = if number < failing {
                Err(longmen_db::Error::NodeLeaseOver.into())
            } else {
                Ok(Reply::data(number))
            };
            answer
        }
    };
    let routes = Routes::new("test").post("/test", Permission::Public, "Fails at first", handler);
    let service = routes.build().0.with_state(admin.running().state().clone());
    let request = Request::post("/test").body(Body::empty()).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(answer.into_body(), 4096).await.unwrap();
    (serde_json::from_slice(&body).unwrap(), calls.load(Ordering::Relaxed))
}

#[tokio::test]
async fn what_may_be_done_again_is_done_once_more() {
    let admin = TestAdmin::start().await;
    for (failing, data, times) in [(0, Some(0), 1), (1, Some(1), 2), (2, None, 2)] {
        let (answer, called) = call(&admin, failing).await;
        assert_eq!(answer["data"].as_u64(), data, "{answer}");
        assert_eq!(called, times, "{failing} failures");
        assert_eq!(answer["message"].as_str(), data.is_none().then_some(BUSY));
    }
    admin.stop().await;
}

/// A transaction that holds one selector until it is told to let go.
struct Holder {
    psql: Child,
    input: ChildStdin,
}

impl Holder {
    fn new(url: &str, selector: &str) -> Self {
        let mut psql = Command::new("psql")
            .args(["-XAtq", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = psql.stdin.take().unwrap();
        writeln!(input, "BEGIN; UPDATE selector SET enabled = enabled WHERE id = '{selector}';")
            .unwrap();
        writeln!(input, "SELECT 'held';").unwrap();
        let mut line = String::new();
        BufReader::new(psql.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Self { psql, input }
    }

    /// Lets go once a second attempt waits: the first one's wait has then ended.
    fn let_go_at_the_second_attempt(mut self, url: &str) {
        const WAITING: &str = "SELECT l.waitstart FROM pg_locks l \
             JOIN pg_stat_activity a ON a.pid = l.pid \
             WHERE a.datname = current_database() AND l.waitstart IS NOT NULL";
        let begin = Instant::now();
        let mut seen: Vec<String> = Vec::new();
        while seen.len() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(60), "waits seen: {seen:?}");
            let waits = Command::new("psql").args(["-XAtq", url, "-c", WAITING]).output().unwrap();
            for wait in String::from_utf8_lossy(&waits.stdout).lines() {
                if !seen.iter().any(|seen| seen == wait) {
                    seen.push(wait.to_owned());
                }
            }
        }
        writeln!(self.input, "ROLLBACK;").unwrap();
        drop(self.input);
        assert!(self.psql.wait().unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_another_holds_for_a_while_is_asked_for_once_more() {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let admin = TestAdmin::with(|config| {
        config.store = StoreConfig::Postgres { url: Secret::new(url.clone()) };
        // Also how long a transaction waits for a row.
        config.pool.acquire_timeout = Duration::from_secs(4);
    });
    let admin = admin.await;
    let token = admin.token("admin", PASSWORD).await;
    let made = admin.api(&token, "POST", "/selector", Some(selector("orders"))).await;
    let id = made["data"].as_str().unwrap().to_owned();
    let holder = {
        let (url, id) = (url.clone(), id.clone());
        tokio::task::spawn_blocking(move || Holder::new(&url, &id)).await.unwrap()
    };
    let path = format!("/selector/{id}");
    let edit = admin.api(&token, "PUT", &path, Some(selector("renamed")));
    let release = tokio::task::spawn_blocking(move || holder.let_go_at_the_second_attempt(&url));
    let (edited, released) = tokio::join!(edit, release);
    released.unwrap();
    assert_eq!((&edited["code"], &edited["data"]), (&200.into(), &1.into()), "{edited}");
    admin.stop().await;
}
