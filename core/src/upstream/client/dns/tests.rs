use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::{Answer, Dns, LookUp, LookUpError, LookUpFuture, lock};

/// Answers in order; the last one again and again. Tells of each look-up.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Answer, LookUpError>>>,
    asked: Mutex<Vec<Instant>>,
    told: Notify,
}

impl LookUp for Script {
    fn look_up(&self, _: &str) -> LookUpFuture {
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        self.asked.lock().unwrap().push(Instant::now());
        self.told.notify_one();
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

#[tokio::test(start_paused = true)]
async fn a_name_in_use_is_looked_up_before_its_time_is_over() {
    let (script, dns) = dns([found(&[A], 10), found(&[B], 10)]);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]));
    sleep(Duration::from_millis(7_900)).await;
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]), "within its time");
    sleep(Duration::from_millis(200)).await;
    assert_eq!(dns.resolve("u").await, Ok(vec![B.into()]), "from the look-up at 8 s");
    let asked = script.asked.lock().unwrap().clone();
    assert_eq!((asked[1] - asked[0]).as_secs(), 8);
    assert_eq!(asked.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_not_used_is_forgotten() {
    let (script, dns) = dns([found(&[A], 10)]);
    dns.resolve("u").await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(lock(&dns.names).is_empty());
    assert_eq!(script.asked.lock().unwrap().len(), 1, "nobody asked, nothing was looked up");
    dns.resolve("u").await.unwrap();
    assert_eq!(script.asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn addresses_take_turns() {
    let (script, dns) = dns([found(&[A, B], 10)]);
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into(), B.into()]));
    assert_eq!(dns.resolve("u").await, Ok(vec![B.into(), A.into()]));
    assert_eq!(dns.resolve("u").await, Ok(vec![A.into(), B.into()]));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_gone_counts_at_once_and_one_that_comes_back_too() {
    let gone = Err(LookUpError::NoSuchName { ttl: Some(Duration::from_secs(60)) });
    let (script, dns) = dns([found(&[A], 10), gone.clone(), found(&[B], 10)]);
    dns.resolve("u").await.unwrap();
    script.told.notified().await;
    script.told.notified().await;
    // The entry was unused meanwhile, so that the next use is a first sight.
    let Err(LookUpError::NoSuchName { .. }) = dns.resolve("u").await else {
        panic!("the name has no addresses any more");
    };
    script.told.notified().await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(dns.resolve("u").await, Ok(vec![B.into()]));
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_outlives_failures_for_a_while() {
    let (_, dns) = dns([found(&[A], 10), failed()]);
    dns.resolve("u").await.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(309) {
        assert_eq!(dns.resolve("u").await, Ok(vec![A.into()]), "after {:?}", begun.elapsed());
        sleep(Duration::from_millis(500)).await;
    }
    sleep(Duration::from_secs(2)).await;
    let Err(LookUpError::Failed(_)) = dns.resolve("u").await else {
        panic!("too old to be believed");
    };
}

#[tokio::test(start_paused = true)]
async fn many_askers_share_one_look_up() {
    let (script, dns) = dns([found(&[A], 10)]);
    let all = futures_util::future::join_all((0..100).map(|_| dns.resolve("u"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}
