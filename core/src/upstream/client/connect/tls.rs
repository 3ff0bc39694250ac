//! TLS towards upstreams.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use p12_keystore::{KeyStore as Pkcs12, Pkcs12ImportPolicy};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tracing::{debug, warn};

use super::TlsStream;
use crate::upstream::client::{KeyStore, TlsOptions};

/// Why TLS cannot be set up from the configuration.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}", path = path.display())]
pub struct TlsSetupError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

impl TlsSetupError {
    fn new(path: &Path, message: impl std::fmt::Display) -> Self {
        Self { path: path.to_owned(), message: message.to_string() }
    }
}

/// TLS towards a peer that is no upstream, by the same roots: an admin.
#[derive(Debug, Clone)]
pub struct TlsConnector(Arc<TlsClient>);

impl TlsConnector {
    /// Reads the configured files; the system's roots are read at the first handshake.
    ///
    /// # Errors
    /// Certificates and keys that cannot be read.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsSetupError> {
        Ok(Self(Arc::new(TlsClient::new(options)?)))
    }

    /// Shakes hands for HTTP/1.1. The certificate must be for `host`, a name or an IP literal
    /// without brackets.
    ///
    /// # Errors
    /// The connection is lost, or the peer is not believed.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream> {
        self.0.handshake(host, stream, Alpn::Http1).await
    }
}

/// Which protocols are offered in a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream::client) enum Alpn {
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 first, HTTP/1.1 else.
    Http2,
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The two configurations, made at the first use: most gateways have no upstream with TLS, and
/// reading the system's roots takes time and memory.
pub(in crate::upstream::client) struct TlsClient {
    provider: Arc<CryptoProvider>,
    insecure: bool,
    trusted: Vec<CertificateDer<'static>>,
    identity: Option<Identity>,
    configs: OnceCell<[Arc<ClientConfig>; 2]>,
}

impl std::fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsClient").field("insecure", &self.insecure).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Reads the configured files; mistakes in them are found at the start.
    pub(in crate::upstream::client) fn new(options: &TlsOptions) -> Result<Self, TlsSetupError> {
        let mut trusted = Vec::new();
        for path in &options.trusted_certificates {
            let found = read_certificates(path)?;
            let mut store = RootCertStore::empty();
            for certificate in &found {
                store.add(certificate.clone()).map_err(|error| {
                    TlsSetupError::new(path, format_args!("not a usable root: {error}"))
                })?;
            }
            trusted.extend(found);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identity = match &options.key_store {
            None => None,
            Some(KeyStore::Pem { path }) => Some((path, read_pem(path)?)),
            Some(KeyStore::Pkcs12 { path, password }) => Some((path, read_pkcs12(path, password)?)),
        };
        if let Some((path, (chain, key))) = &identity {
            rustls::sign::CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider)
                .map_err(|error| {
                    TlsSetupError::new(path, format_args!("not a usable key: {error}"))
                })?;
        }
        Ok(Self {
            provider,
            insecure: options.insecure,
            trusted,
            identity: identity.map(|(_, identity)| identity),
            configs: OnceCell::new(),
        })
    }

    /// The configuration for connections that offer `alpn`. The first call reads the system's
    /// roots, beside the runtime's own threads.
    pub(in crate::upstream::client) async fn config(
        &self,
        alpn: Alpn,
    ) -> io::Result<Arc<ClientConfig>> {
        let configs = self.configs.get_or_try_init(|| self.build()).await?;
        Ok(Arc::clone(&configs[usize::from(alpn == Alpn::Http2)]))
    }

    /// A configuration that believes nobody, for a client that is never to use it.
    pub(in crate::upstream::client) fn none(&self) -> Result<ClientConfig, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
    }

    /// Shakes hands: the name is sent (SNI, unless it is an IP literal) and must be the
    /// certificate's.
    pub(super) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
        alpn: Alpn,
    ) -> io::Result<TlsStream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("{host:?} is not a name for TLS")))?;
        let connector = tokio_rustls::TlsConnector::from(self.config(alpn).await?);
        connector.connect(name, stream).await
    }

    async fn build(&self) -> io::Result<[Arc<ClientConfig>; 2]> {
        let mut roots = RootCertStore::empty();
        if !self.insecure {
            let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs)
                .await
                .map_err(io::Error::other)?;
            for error in &found.errors {
                warn!("cannot read a root certificate of the system: {error}");
            }
            let (added, ignored) = roots.add_parsable_certificates(found.certs);
            debug!(added, ignored, "system roots read");
            roots.add_parsable_certificates(self.trusted.iter().cloned());
        }
        let one = self.one(roots).map_err(io::Error::other)?;
        let with = |protocols: &[&[u8]]| {
            let mut config = one.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok([with(&[b"http/1.1"]), with(&[b"h2", b"http/1.1"])])
    }

    fn one(&self, roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?;
        let builder = if self.insecure {
            let believe = BelieveAll(Arc::clone(&self.provider));
            builder.dangerous().with_custom_certificate_verifier(Arc::new(believe))
        } else {
            builder.with_root_certificates(roots)
        };
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key()),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsSetupError> {
    fs::read(path).map_err(|error| TlsSetupError::new(path, error))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found =
        found.map_err(|error| TlsSetupError::new(path, format_args!("not PEM: {error}")))?;
    if found.is_empty() {
        return Err(TlsSetupError::new(path, "no certificate in it, expected PEM"));
    }
    Ok(found)
}

fn read_pem(path: &Path) -> Result<Identity, TlsSetupError> {
    let chain = read_certificates(path)?;
    let key = PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| {
        TlsSetupError::new(path, format_args!("no unencrypted private key in it: {error}"))
    })?;
    Ok((chain, key))
}

fn read_pkcs12(path: &Path, password: &str) -> Result<Identity, TlsSetupError> {
    let store = Pkcs12::from_pkcs12(&read(path)?, password, Pkcs12ImportPolicy::Strict).map_err(
        |error| TlsSetupError::new(path, format_args!("not PKCS#12, or another password: {error}")),
    )?;
    let Some((_, found)) = store.private_key_chain() else {
        return Err(TlsSetupError::new(path, "no private key with a certificate in it"));
    };
    let chain = found.certs().iter().map(|one| one.as_der().to_vec().into()).collect();
    let key = PrivatePkcs8KeyDer::from(found.key().as_der().to_vec());
    Ok((chain, key.into()))
}

/// Believes any certificate, but not one whose key the peer does not have.
#[derive(Debug)]
struct BelieveAll(Arc<CryptoProvider>);

impl ServerCertVerifier for BelieveAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
