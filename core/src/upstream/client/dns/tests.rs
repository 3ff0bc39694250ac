use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{Answer, Dns, Known, LookUp, LookUpError, LookUpFuture, lock};

/// Answers in order; the last one again and again.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Answer, LookUpError>>>,
    asked: Mutex<Vec<Instant>>,
}

impl LookUp for Script {
    fn look_up(&self, _: &str) -> LookUpFuture {
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        self.asked.lock().unwrap().push(Instant::now());
        Box::pin(async move { answer })
    }
}

fn dns(answers: impl IntoIterator<Item = Result<Answer, LookUpError>>) -> (Arc<Script>, Dns) {
    let script = Arc::new(Script::default());
    script.answers.lock().unwrap().extend(answers);
    (Arc::clone(&script), Dns::new(script, Handle::current()))
}

fn found(addresses: &[[u8; 4]], ttl: u64) -> Result<Answer, LookUpError> {
    let addresses = addresses.iter().copied().map(IpAddr::from).collect();
    Ok(Answer { addresses, ttl: Duration::from_secs(ttl) })
}

fn failed() -> Result<Answer, LookUpError> {
    Err(LookUpError::Failed("timed out".to_owned()))
}

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];

/// Waits for what comes within a second or so.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("it never came")
}

async fn until_resolved(dns: &Dns, wanted: Result<Vec<IpAddr>, LookUpError>) {
    soon(async {
        while dns.resolve("u").await != wanted {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_in_use_is_looked_up_before_its_time_is_over() {
    let (script, dns) = dns([found(&[A], 1), found(&[B], 60)]);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]));
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]), "in use");
    until_resolved(&dns, Ok(vec![B.into()])).await;
    let asked = script.asked.lock().unwrap().clone();
    assert!(asked[1] - asked[0] >= Duration::from_millis(799), "after 80 % of its time");
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn a_name_that_is_not_used_is_forgotten() {
    let (script, dns) = dns([found(&[A], 1)]);
    dns.resolve("u").await.unwrap();
    soon(async {
        while !lock(&dns.names).is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(script.asked.lock().unwrap().len(), 1, "nobody asked, nothing was looked up");
    dns.resolve("u").await.unwrap();
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn addresses_take_turns() {
    let (script, dns) = dns([found(&[A, B], 10)]);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into(), B.into()]));
    assert_eq!(dns.resolve("u").await, Ok(vec![B.into(), A.into()]));
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into(), B.into()]));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_record_that_is_gone_counts_at_once_and_one_that_comes_back_too() {
    let gone = LookUpError::NoSuchName { ttl: Some(Duration::from_secs(1)) };
    let (_, dns) = dns([found(&[A], 1), Err(gone.clone()), found(&[B], 60)]);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]));
    until_resolved(&dns, Err(gone)).await;
    until_resolved(&dns, Ok(vec![B.into()])).await;
}

#[tokio::test]
async fn the_last_answer_outlives_failures_for_a_while() {
    let (_, dns) = dns([found(&[A], 60), failed()]);
    dns.resolve("u").await.unwrap();
    let age = |past: u64| {
        let until = Instant::now().checked_sub(Duration::from_secs(past)).expect("up for minutes");
        let list = Arc::from([IpAddr::from(A)]);
        let names = lock(&dns.names);
        names["u"].known.send_replace(Known::Addresses { list, until });
    };
    age(290);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]));
    age(301);
    let Err(LookUpError::Failed(_)) = dns.resolve("u").await else {
        panic!("too old to be believed");
    };
}

#[tokio::test]
async fn many_askers_share_one_look_up() {
    let (script, dns) = dns([found(&[A], 10)]);
    let all = futures_util::future::join_all((0..100).map(|_| dns.resolve("u"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}
