//! Bodies without an end (C-19), and names without number (C-31).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Field, STRATEGIES, ok, upstream};
use crate::standard::{objects, routed};
use crate::support::{LIMIT, client};

/// An upstream that reads for ever and counts.
async fn sink() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (most, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let told = Arc::clone(&most);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (most, counted) = (Arc::clone(&most), Arc::clone(&counted));
            tokio::spawn(async move {
                let (mut total, mut piece) = (0, vec![0; 64 << 10]);
                while let Ok(read @ 1..) = stream.read(&mut piece).await {
                    total += read;
                    counted.fetch_add(read, Ordering::Relaxed);
                    most.fetch_max(total, Ordering::Relaxed);
                }
            });
        }
    });
    (address, told)
}

/// Sends pieces without an end until an answer comes; says what was sent, and the answer.
async fn endless(address: std::net::SocketAddr, kind: &str) -> (usize, String) {
    let (mut reading, mut writing) = TcpStream::connect(address).await.unwrap().into_split();
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    writing.write_all(head.as_bytes()).await.unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let sending = tokio::spawn(async move {
        let mut piece = b"10000\r\n".to_vec();
        piece.extend(vec![b'x'; 0x10000]);
        piece.extend(b"\r\n");
        while writing.write_all(&piece).await.is_ok() {
            count.fetch_add(0x10000, Ordering::Relaxed);
        }
    });
    let mut answer = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&answer).contains("\r\n\r\n") {
            let read = reading.read_buf(&mut answer).await;
            assert!(matches!(read, Ok(1..)), "no answer could be read: {read:?}");
        }
    };
    tokio::time::timeout(LIMIT, reading).await.expect("never refused");
    sending.abort();
    let _ = sending.await;
    (sent.load(Ordering::Relaxed), String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c19_a_chunked_body_is_refused_where_it_passes_the_limit() {
    const MAX: usize = 10 << 20;
    for strategy in STRATEGIES {
        let (address, most) = sink().await;
        let yaml = format!("{strategy}  limits:\n    requestMaxBytes: 10MB\n");
        let field = Field::start(routed(&address), &yaml).await;
        let target = field.gateway.address;
        let clients = (0..20).map(|number| {
            let kinds = ["multipart/form-data; boundary=b", "application/json"];
            tokio::spawn(endless(target, kinds[number % 2]))
        });
        for client in clients.collect::<Vec<_>>() {
            let (_, answer) = client.await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
            assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
        }
        // What is past the limit went nowhere; chunk heads and the request's head came on top.
        let most = most.load(Ordering::Relaxed);
        assert!(most <= MAX + (1 << 20), "{most} bytes reached the upstream ({strategy})");
        field.stop().await;
    }
}

async fn scrape(field: &Field) -> String {
    let url = format!("http://{}/actuator/prometheus", field.gateway.management);
    client().get(url).send().await.unwrap().text().await.unwrap()
}

/// Requests with a path, a method and a host of their own each, half of them routed.
async fn scan(field: &Field, range: std::ops::Range<usize>) {
    let mut stream = field.connect().await;
    for number in range {
        let start = if number % 2 == 0 { "u" } else { "nowhere" };
        let method = if number % 3 == 0 { format!("M{number}") } else { "GET".to_owned() };
        let request =
            format!("{method} /{start}/{number} HTTP/1.1\r\nHost: h{number}.test\r\n\r\n");
        stream.send(request.as_bytes()).await;
        let answer = stream.answer(false).await;
        assert_eq!(answer.status(), if number % 2 == 0 { 200 } else { 404 });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c31_random_paths_methods_and_hosts_make_no_series() {
    let origin = upstream(|_| ok("ok")).await;
    let mut manners = routed("");
    manners.sequence = objects(
        "divide",
        "/u/",
        &origin.address().to_string(),
        r#"{"loadBalance":"roundRobin","retry":0,"timeout":3000}"#,
    );
    let field = Field::start(manners, "").await;
    scan(&field, 0..12).await;
    let before = scrape(&field).await;
    scan(&field, 12..2012).await;
    let total = 2012.0_f64;
    let counted = async {
        loop {
            let after = scrape(&field).await;
            let sum: f64 = after
                .lines()
                .filter(|line| line.starts_with("longmen_http_requests_total{"))
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum();
            if sum >= total {
                return after;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let after = tokio::time::timeout(LIMIT, counted).await.expect("all are counted");
    let names = |text: &str| -> Vec<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    assert_eq!(names(&before), names(&after), "the same series after 2,000 more names");
    assert!(after.len() < 1 << 20, "{} bytes", after.len());
    field.stop().await;
}
