//! Admins behind TLS, polled and by websocket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::admin::OurAdmin;
use super::{eventually, served_by};
use crate::support::{gateway, get, stop, upstream};

fn file(name: &str) -> PathBuf {
    let certificates = "../core/tests/conformance/tls";
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(certificates).join(name)
}

/// TLS in front of a port of this machine, until it is dropped.
struct Front {
    address: SocketAddr,
    _accepting: JoinSet<()>,
}

impl Front {
    async fn of(port: u16) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
        let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                open.spawn(async move {
                    // A gateway that does not believe us ends the handshake.
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let mut admin = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut admin).await;
                });
            }
        });
        Self { address, _accepting: accepting }
    }

    /// What a gateway is told of this admin: by websocket, and by polling.
    fn addresses(&self) -> [String; 2] {
        [
            format!("    websocket:\n      urls: wss://{}/websocket\n", self.address),
            format!(
                "    http:\n      url: https://{}\n      username: admin\n      password: \"123456\"\n",
                self.address
            ),
        ]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_is_believed_is_followed() {
    let (mut admin, u1, u2) = (OurAdmin::start().await, upstream("U1"), upstream("U2"));
    admin.route("first", &u1).await;
    let front = Front::of(admin.port).await;
    let roots = file("ca.pem");
    for (number, address) in front.addresses().into_iter().enumerate() {
        let gateway = gateway(&format!(
            "  compat: standard\n  sync:\n    ssl:\n      trustedX509Certificates: {}\n{address}",
            roots.display()
        ))
        .await;
        eventually(&gateway, "/first/x", served_by("U1")).await;
        let later = ["second", "third"][number];
        admin.route(later, &u2).await;
        eventually(&gateway, &format!("/{later}/x"), served_by("U2")).await;
        stop(gateway).await;
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_is_not_believed_is_told_nothing_and_not_followed() {
    let (mut admin, u1) = (OurAdmin::start().await, upstream("U1"));
    admin.route("first", &u1).await;
    let front = Front::of(admin.port).await;
    for address in front.addresses() {
        let gateway = gateway(&format!("  compat: standard\n  sync:\n{address}")).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_ne!(get(&gateway, "/first/x").await.status, 200);
        assert_eq!(gateway.store.load_full().position.version, 0);
        stop(gateway).await;
    }
    admin.stop().await;
}
