//! Upstreams with TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longmen_core::error::{ErrorStatus, Reason, Retry};
use longmen_core::upstream::{
    Answer, ClientFactory, ClientOptions, ConnectFailure, KeyStore, LookUp, LookUpFuture,
    TlsOptions,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::join;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, error, get, text};

conformance! {
    right_names, wrong_names, unknown_roots, the_systems_roots_do_not_know_it, believing_anybody,
    client_certificates, kept_connections, slow_handshakes, no_tls_at_all,
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/tls").join(name)
}

/// Every name is this machine.
#[derive(Debug)]
pub(crate) struct Local;

impl LookUp for Local {
    fn look_up(&self, _: &str) -> LookUpFuture {
        let answer =
            Answer { addresses: vec![[127, 0, 0, 1].into()], ttl: Duration::from_secs(60) };
        Box::pin(async move { Ok(answer) })
    }
}

fn trusting(roots: &[&str]) -> TlsOptions {
    let trusted_certificates = roots.iter().map(|name| file(name)).collect();
    TlsOptions { trusted_certificates, ..TlsOptions::default() }
}

pub(crate) fn options(tls: TlsOptions) -> ClientOptions {
    ClientOptions { tls, ..ClientOptions::default() }
}

pub(crate) fn trusted() -> TlsOptions {
    trusting(&["ca.pem"])
}

pub(crate) fn rig(strategy: Strategy, tls: TlsOptions) -> Rig {
    Rig::with_names(strategy, options(tls), Arc::new(Local))
}

pub(crate) fn server(client_certificates: bool, alpn: &[&str]) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if client_certificates {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

async fn right_names(strategy: Strategy) {
    for host in ["upstream.test", "UPSTREAM.test", "127.0.0.1"] {
        let rig = rig(strategy, trusted());
        let origin = Origin::with_tls(server(false, &[])).await;
        let endpoint = rig.endpoint(&format!("https://{host}:{}", origin.address().port()));
        let upstream = async {
            let mut conn = origin.accept().await;
            let received = conn.request().await;
            conn.answer("safe").await;
            // An address is not sent as a name.
            let name = (host != "127.0.0.1").then_some("upstream.test");
            assert_eq!(conn.server_name(), name);
            received
        };
        let (response, received) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
        assert_eq!(text(response.unwrap()).await, "safe");
        assert!(received.header("host").unwrap().starts_with(&host.to_lowercase()));
        assert_eq!(rig.stats().target_rewritten, 0);
    }
}

/// A call whose handshake must fail.
async fn refused(strategy: Strategy, tls: TlsOptions, host: &str, client_certificates: bool) {
    let rig = rig(strategy, tls);
    let origin = Origin::with_tls(server(client_certificates, &[])).await;
    let endpoint = rig.endpoint(&format!("https://{host}:{}", origin.address().port()));
    let upstream = async {
        // With TLS 1.3 the server may believe that all is well for a moment.
        if let Ok(mut conn) = origin.try_accept().await {
            conn.closed().await;
        }
    };
    let (result, ()) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
    let error = error(result);
    if client_certificates {
        assert!(matches!(error.reason(), Reason::UpstreamTls | Reason::UpstreamReset), "{error}");
        return;
    }
    assert_eq!((error.reason(), error.retry()), (Reason::UpstreamTls, Retry::Safe), "{error}");
    assert_eq!(error.status(ErrorStatus::Standard), 502);
    assert!(error.log_detail().unwrap().contains("certificate"), "{error}");
    assert_eq!(rig.stats().failures(ConnectFailure::Tls), 1);
    assert_eq!(rig.stats().in_use, 0);
}

async fn wrong_names(strategy: Strategy) {
    refused(strategy, trusted(), "other.test", false).await;
}

async fn unknown_roots(strategy: Strategy) {
    refused(strategy, trusting(&["other-ca.pem"]), "upstream.test", false).await;
}

async fn the_systems_roots_do_not_know_it(strategy: Strategy) {
    refused(strategy, TlsOptions::default(), "upstream.test", false).await;
}

async fn believing_anybody(strategy: Strategy) {
    let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
    let rig = rig(strategy, insecure);
    let origin = Origin::with_tls(server(false, &[])).await;
    let endpoint = rig.endpoint(&format!("https://other.test:{}", origin.address().port()));
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("whoever").await;
    };
    let (response, ()) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
    assert_eq!(text(response.unwrap()).await, "whoever");
}

async fn client_certificates(strategy: Strategy) {
    let pem = KeyStore::Pem { path: file("client-store.pem") };
    let pkcs12 = KeyStore::Pkcs12 { path: file("client-store.p12"), password: "secret".to_owned() };
    for store in [pem, pkcs12] {
        let rig = rig(strategy, TlsOptions { key_store: Some(store), ..trusted() });
        let origin = Origin::with_tls(server(true, &[])).await;
        let endpoint = rig.endpoint(&format!("https://upstream.test:{}", origin.address().port()));
        let upstream = async {
            let mut conn = origin.accept().await;
            conn.request().await;
            conn.answer("known").await;
            conn.client_certificates()
        };
        let (response, shown) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
        assert_eq!(text(response.unwrap()).await, "known");
        assert_eq!(shown, 1);
    }
    refused(strategy, trusted(), "upstream.test", true).await;
}

async fn kept_connections(strategy: Strategy) {
    let rig = rig(strategy, trusted());
    let origin = Origin::with_tls(server(false, &["http/1.1"])).await;
    let endpoint = rig.endpoint(&format!("https://upstream.test:{}", origin.address().port()));
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("one").await;
        conn.request().await;
        conn.close();
        // Closed under the second request: it comes again, over TLS.
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("two").await;
    };
    let client = async {
        for expected in ["one", "two"] {
            let response = rig.send(&endpoint, get(&endpoint, "/")).await.unwrap();
            assert_eq!(text(response).await, expected);
        }
    };
    join!(client, upstream);
    assert_eq!(rig.stats().replayed, 1);
}

async fn slow_handshakes(strategy: Strategy) {
    let limit = Duration::from_millis(100);
    let slow = ClientOptions {
        connect_timeout: limit,
        ..options(TlsOptions { handshake_timeout: limit, ..trusted() })
    };
    let rig = Rig::with_names(strategy, slow, Arc::new(Local));
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("https://upstream.test:{}", origin.address().port()));
    let (result, _silent) = join!(rig.send(&endpoint, get(&endpoint, "/")), origin.accept_raw());
    let error = error(result);
    assert_eq!((error.reason(), error.retry()), (Reason::UpstreamConnectTimeout, Retry::Safe));
    assert_eq!(rig.stats().failures(ConnectFailure::Timeout), 1);
}

async fn no_tls_at_all(strategy: Strategy) {
    let rig = rig(strategy, trusted());
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&format!("https://upstream.test:{}", origin.address().port()));
    let upstream = async {
        let mut stream = origin.accept_raw().await;
        let answer = b"HTTP/1.1 400 The plain HTTP request was sent to HTTPS port\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
        stream
    };
    let (result, _stream) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
    assert_eq!(error(result).reason(), Reason::UpstreamTls);
}

#[tokio::test]
async fn unusable_files_are_named() {
    let p12 = |password: &str| KeyStore::Pkcs12 {
        path: file("client-store.p12"),
        password: password.to_owned(),
    };
    let cases = [
        (trusting(&["missing.pem"]), "missing.pem: No such file"),
        (trusting(&["make.sh"]), "make.sh: no certificate in it, expected PEM"),
        (
            TlsOptions { key_store: Some(p12("wrong")), ..TlsOptions::default() },
            "client-store.p12: not PKCS#12, or another password",
        ),
        (
            TlsOptions {
                key_store: Some(KeyStore::Pem { path: file("server.pem") }),
                ..TlsOptions::default()
            },
            "server.pem: no unencrypted private key in it",
        ),
    ];
    for (tls, expected) in cases {
        let handle = tokio::runtime::Handle::current();
        let error = ClientFactory::new(options(tls), &handle).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("wrong"), "no password in it: {error}");
    }
}
