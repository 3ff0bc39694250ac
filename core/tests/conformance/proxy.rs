//! An HTTP proxy on the way to upstreams.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::error::Reason;
use longmen_core::upstream::{ClientOptions, ConnectFailure, Probe, ProxyOptions, TlsOptions};
use tokio::io::AsyncWriteExt;
use tokio::join;
use tokio::net::TcpStream;

use crate::support::origin::{Conn, Origin};
use crate::support::{Rig, Strategy, error, get, text, within};
use crate::tls;

conformance! { tunnels, tunnels_with_tls, refusals, hosts_that_are_called_directly, probes }

fn options(proxy: &Origin, tls: TlsOptions) -> ClientOptions {
    let proxy = ProxyOptions {
        host: "127.0.0.1".to_owned(),
        port: proxy.address().port(),
        credentials: Some(("user".to_owned(), "pass".to_owned())),
        direct: Some(regex::Regex::new(r"^(?:127\..*|direct\.test)$").unwrap()),
    };
    ClientOptions { proxy: Some(proxy), ..tls::options(tls) }
}

/// Takes a CONNECT, and lets bytes through to the address it is told.
async fn relay(proxy: &Origin, to: std::net::SocketAddr) -> String {
    let mut conn = proxy.accept().await;
    let head = conn.head().await.head;
    conn.send("HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n").await;
    let mut near = conn.into_stream();
    tokio::spawn(async move {
        let mut far = TcpStream::connect(to).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        let _ = near.shutdown().await;
    });
    head
}

async fn serve(origin: &Origin) -> Conn {
    let mut conn = origin.accept().await;
    assert_eq!(conn.request().await.line(), "GET /p HTTP/1.1", "the target is not absolute");
    conn.answer("through").await;
    conn
}

async fn probes(strategy: Strategy) {
    let (proxy, origin) = (Origin::new().await, Origin::new().await);
    let names = Arc::new(tls::Local);
    let rig = Rig::with_names(strategy, options(&proxy, TlsOptions::default()), names);
    let probe = rig.factory.probe(Duration::from_secs(20));
    let endpoint = rig.endpoint("far.test:8080");
    let (there, head) = join!(within(probe.probe(&endpoint)), relay(&proxy, origin.address()));
    assert!(there && head.starts_with("CONNECT far.test:8080 "), "{head}");
    let refusing = async {
        let mut conn = proxy.accept().await;
        conn.head().await;
        conn.send("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await;
    };
    assert!(!join!(within(probe.probe(&endpoint)), refusing).0);
}

async fn tunnels(strategy: Strategy) {
    let (proxy, origin) = (Origin::new().await, Origin::new().await);
    let names = Arc::new(tls::Local);
    let rig = Rig::with_names(strategy, options(&proxy, TlsOptions::default()), names);
    let endpoint = rig.endpoint("far.test:8080");
    let (response, head, _conn) = join!(
        rig.send(&endpoint, get(&endpoint, "/p")),
        relay(&proxy, origin.address()),
        serve(&origin)
    );
    assert_eq!(text(response.unwrap()).await, "through");
    assert_eq!(
        head,
        "CONNECT far.test:8080 HTTP/1.1\r\nHost: far.test:8080\r\n\
         Proxy-Authorization: Basic dXNlcjpwYXNz"
    );
}

async fn tunnels_with_tls(strategy: Strategy) {
    let proxy = Origin::new().await;
    let origin = Origin::with_tls(tls::server(false, &[])).await;
    let names = Arc::new(tls::Local);
    let rig = Rig::with_names(strategy, options(&proxy, tls::trusted()), names);
    let endpoint = rig.endpoint("https://upstream.test");
    let (response, head, conn) = join!(
        rig.send(&endpoint, get(&endpoint, "/p")),
        relay(&proxy, origin.address()),
        serve(&origin)
    );
    assert_eq!(text(response.unwrap()).await, "through");
    assert!(head.starts_with("CONNECT upstream.test:443 HTTP/1.1\r\n"));
    assert_eq!(conn.server_name(), Some("upstream.test"));
}

async fn refusals(strategy: Strategy) {
    for answer in ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "nonsense\r\n\r\n", ""] {
        let proxy = Origin::new().await;
        let names = Arc::new(tls::Local);
        let rig = Rig::with_names(strategy, options(&proxy, TlsOptions::default()), names);
        let endpoint = rig.endpoint("far.test:8080");
        let refusing = async {
            let mut conn = proxy.accept().await;
            conn.head().await;
            conn.send(answer).await;
        };
        let (result, ()) = join!(rig.send(&endpoint, get(&endpoint, "/p")), refusing);
        let error = error(result);
        assert_eq!(error.reason(), Reason::UpstreamConnect);
        assert!(!error.to_string().contains("pass"), "no secret in it: {error}");
        assert_eq!(rig.stats().failures(ConnectFailure::Proxy), 1);
    }
}

async fn hosts_that_are_called_directly(strategy: Strategy) {
    let (proxy, origin) = (Origin::new().await, Origin::new().await);
    let names = Arc::new(tls::Local);
    let rig = Rig::with_names(strategy, options(&proxy, TlsOptions::default()), names);
    for host in ["127.0.0.1", "direct.test"] {
        let endpoint = rig.endpoint(&format!("{host}:{}", origin.address().port()));
        let (response, _conn) = join!(rig.send(&endpoint, get(&endpoint, "/p")), serve(&origin));
        assert_eq!(text(response.unwrap()).await, "through");
    }
    assert!(!proxy.has_another().await);
}
