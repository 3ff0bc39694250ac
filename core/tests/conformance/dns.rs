//! Names, by a small server of the tests' own.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longmen_core::error::{Reason, Retry};
use longmen_core::upstream::{
    ClientOptions, ConnectFailure, Endpoint, PoolLimit, PoolOptions, Probe, SystemLookUp,
};
use tokio::join;
use tokio::net::UdpSocket;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, error, get, text, within};

conformance! {
    a_name_is_looked_up_once, search_domains, all_addresses_are_tried, unknown_names,
    vanished_names, changed_addresses, literals_are_not_looked_up, the_hosts_file,
    probes_find_names_as_requests_do,
}

/// Answers for the names it has: A records for them, no records of other types, and NXDOMAIN for
/// other names.
#[derive(Clone)]
struct NameServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

#[derive(Default)]
struct Zone {
    records: HashMap<String, (Vec<Ipv4Addr>, u32)>,
    asked: Vec<String>,
}

const A: u16 = 1;

impl NameServer {
    async fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: socket.local_addr().unwrap(), zone: Arc::default() };
        let zone = Arc::clone(&server.zone);
        tokio::spawn(async move {
            let mut query = [0; 512];
            loop {
                let Ok((n, peer)) = socket.recv_from(&mut query).await else { return };
                let answer = zone.lock().unwrap().answer(&query[..n]);
                let _ = socket.send_to(&answer, peer).await;
            }
        });
        server
    }

    fn set(&self, name: &str, addresses: &[Ipv4Addr], ttl: u32) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.insert(name.to_owned(), (addresses.to_vec(), ttl));
    }

    fn remove(&self, name: &str) {
        self.zone.lock().unwrap().records.remove(name);
    }

    /// How often a name's A records were asked for.
    fn asked(&self, name: &str) -> usize {
        self.zone.lock().unwrap().asked.iter().filter(|asked| *asked == name).count()
    }

    fn rig(&self, strategy: Strategy, search: &[&str]) -> Rig {
        // A connection for each request, so that each one needs an address.
        let pool = PoolOptions { limit: PoolLimit::Disabled, ..PoolOptions::default() };
        let options = ClientOptions { pool, ..ClientOptions::default() };
        let names = SystemLookUp::by_server(self.address, search);
        Rig::with_names(strategy, options, Arc::new(names))
    }
}

impl Zone {
    fn answer(&mut self, query: &[u8]) -> Vec<u8> {
        let mut labels = Vec::new();
        let mut at = 12;
        while query[at] != 0 {
            let length = usize::from(query[at]);
            labels.push(String::from_utf8_lossy(&query[at + 1..=at + length]).to_lowercase());
            at += length + 1;
        }
        let question = &query[12..at + 5];
        let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
        let name = labels.join(".");
        let found = self.records.get(&name);
        if kind == A {
            self.asked.push(name.clone());
        }
        let (addresses, ttl) = match found {
            Some((addresses, ttl)) if kind == A => (&addresses[..], *ttl),
            _ => (&[][..], 0),
        };
        let code = if found.is_some() { 0 } else { 3 };
        let mut answer = query[..2].to_vec();
        answer.extend([0x85, 0x80 | code, 0, 1, 0, u8::try_from(addresses.len()).unwrap()]);
        answer.extend([0; 4]);
        answer.extend_from_slice(question);
        for address in addresses {
            answer.extend([0xc0, 12, 0, 1, 0, 1]);
            answer.extend(ttl.to_be_bytes());
            answer.extend([0, 4]);
            answer.extend(address.octets());
        }
        answer
    }
}

/// One GET over a connection of its own.
async fn exchange(rig: &Rig, endpoint: &Arc<Endpoint>, origin: &Origin) -> String {
    let upstream = async {
        let mut conn = origin.accept().await;
        let host = conn.request().await.header("host").unwrap().to_owned();
        conn.answer("ok").await;
        host
    };
    let client = async { text(rig.send(endpoint, get(endpoint, "/")).await.unwrap()).await };
    let (answer, host) = join!(client, upstream);
    assert_eq!(answer, "ok");
    host
}

async fn a_name_is_looked_up_once(strategy: Strategy) {
    let server = NameServer::new().await;
    server.set("orders.test", &[Ipv4Addr::LOCALHOST], 3600);
    let rig = server.rig(strategy, &[]);
    let origin = Origin::new().await;
    let port = origin.address().port();
    let endpoint = rig.endpoint(&format!("orders.test:{port}"));
    for _ in 0..3 {
        assert_eq!(exchange(&rig, &endpoint, &origin).await, format!("orders.test:{port}"));
    }
    assert_eq!(server.asked("orders.test"), 1);
    assert_eq!(rig.stats().opened, 3);
}

async fn search_domains(strategy: Strategy) {
    let server = NameServer::new().await;
    server.set("orders.shop.test", &[Ipv4Addr::LOCALHOST], 3600);
    let rig = server.rig(strategy, &["none.test", "shop.test"]);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("orders:{}", origin.address().port()));
    exchange(&rig, &endpoint, &origin).await;
    assert_eq!(server.asked("orders.none.test"), 1);
    assert_eq!(server.asked("orders.shop.test"), 1);
}

async fn all_addresses_are_tried(strategy: Strategy) {
    let server = NameServer::new().await;
    // Nobody listens on the others.
    let addresses = [[127, 0, 0, 3].into(), [127, 0, 0, 2].into(), Ipv4Addr::LOCALHOST];
    server.set("orders.test", &addresses, 3600);
    let rig = server.rig(strategy, &[]);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("orders.test:{}", origin.address().port()));
    for _ in 0..4 {
        exchange(&rig, &endpoint, &origin).await;
    }
    drop(origin);
    let failed = error(rig.send(&endpoint, get(&endpoint, "/")).await);
    assert_eq!(failed.reason(), Reason::UpstreamConnect);
}

async fn unknown_names(strategy: Strategy) {
    let server = NameServer::new().await;
    let rig = server.rig(strategy, &[]);
    let endpoint = rig.endpoint("nowhere.test:80");
    let failure = rig.send(&endpoint, get(&endpoint, "/")).await.unwrap_err();
    assert_eq!(failure.error.reason(), Reason::UpstreamDns);
    assert_eq!(failure.error.retry(), Retry::Safe);
    assert!(failure.request.is_some());
    assert!(failure.error.log_detail().unwrap().contains("nowhere.test"));
    assert_eq!(rig.stats().failures(ConnectFailure::Dns), 1);
}

async fn vanished_names(strategy: Strategy) {
    let server = NameServer::new().await;
    server.set("orders.test", &[Ipv4Addr::LOCALHOST], 1);
    let rig = server.rig(strategy, &[]);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("orders.test:{}", origin.address().port()));
    exchange(&rig, &endpoint, &origin).await;
    server.remove("orders.test");
    // The upstream still listens; what counts is that its name is gone.
    let gone = async {
        loop {
            match rig.client.send(&endpoint, get(&endpoint, "/")).await {
                Ok(response) => {
                    text(response).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(failure) => return failure.error,
            }
        }
    };
    let serving = async {
        loop {
            let mut conn = origin.accept().await;
            conn.request().await;
            conn.answer("ok").await;
        }
    };
    let error = tokio::select! {
        error = gone => error,
        () = serving => unreachable!(),
    };
    assert_eq!(error.reason(), Reason::UpstreamDns);
    // It is found again once it is back.
    server.set("orders.test", &[Ipv4Addr::LOCALHOST], 1);
    crate::support::until("it was looked up again", || server.asked("orders.test") >= 3).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    exchange(&rig, &endpoint, &origin).await;
}

async fn changed_addresses(strategy: Strategy) {
    let server = NameServer::new().await;
    let old = Origin::new().await;
    let port = old.address().port();
    let new = Origin::at(&format!("127.0.0.2:{port}")).await;
    server.set("orders.test", &[Ipv4Addr::LOCALHOST], 1);
    let rig = server.rig(strategy, &[]);
    let endpoint = rig.endpoint(&format!("orders.test:{port}"));
    exchange(&rig, &endpoint, &old).await;
    server.set("orders.test", &[[127, 0, 0, 2].into()], 3600);
    // Whichever it reaches answers its name.
    let mut reached_new = false;
    while !reached_new {
        let upstream = async {
            let (mut conn, is_new) = tokio::select! {
                conn = old.accept() => (conn, false),
                conn = new.accept() => (conn, true),
            };
            conn.request().await;
            conn.answer("ok").await;
            is_new
        };
        let client = async { text(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
        reached_new = join!(client, upstream).1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.asked("orders.test"), 2, "ahead of its end, and not more often");
}

async fn literals_are_not_looked_up(strategy: Strategy) {
    let server = NameServer::new().await;
    let rig = server.rig(strategy, &[]);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    exchange(&rig, &endpoint, &origin).await;
    if let Ok(listener) = std::net::TcpListener::bind("[::1]:0") {
        let address = listener.local_addr().unwrap();
        drop(listener);
        let origin = Origin::at(&address.to_string()).await;
        let endpoint = rig.endpoint(&origin.url());
        assert_eq!(exchange(&rig, &endpoint, &origin).await, address.to_string());
    }
    assert!(server.zone.lock().unwrap().asked.is_empty());
}

/// The system's own look-up knows none of these names.
async fn probes_find_names_as_requests_do(strategy: Strategy) {
    let server = NameServer::new().await;
    // Nobody listens on the first one.
    server.set("orders.shop.test", &[[127, 0, 0, 3].into(), Ipv4Addr::LOCALHOST], 3600);
    let rig = server.rig(strategy, &["shop.test"]);
    let probe = rig.factory.probe(Duration::from_secs(20));
    let origin = Origin::new().await;
    let port = origin.address().port();
    let by_search = rig.endpoint(&format!("orders:{port}"));
    for _ in 0..2 {
        // Whichever address comes first.
        assert!(within(probe.probe(&by_search)).await);
    }
    assert_eq!(server.asked("orders.shop.test"), 1, "kept like a request's");
    assert!(within(probe.probe(&rig.endpoint(&format!("localhost:{port}")))).await);
    assert_eq!(server.asked("localhost"), 0, "the hosts file counts");
    assert!(!within(probe.probe(&rig.endpoint(&format!("nowhere:{port}")))).await);
    drop(origin);
    assert!(!within(probe.probe(&by_search)).await);
}

async fn the_hosts_file(strategy: Strategy) {
    let server = NameServer::new().await;
    let rig = server.rig(strategy, &[]);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("localhost:{}", origin.address().port()));
    exchange(&rig, &endpoint, &origin).await;
    assert_eq!(server.asked("localhost"), 0);
}
