//! TLS towards a relay: how much of it, and whom to trust.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsPolicy {
    pub mode: TlsMode,
    /// Whether the certificate must be good for the host: a chain to a root the system trusts, and
    /// the host's name. The other side proves in any case that it holds the certificate's key.
    pub verify: bool,
    pub min_version: TlsVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// In clear, whatever is offered.
    None,
    /// STARTTLS when offered and granted, else in clear.
    Opportunistic,
    /// STARTTLS, or no conversation.
    StartTls,
    /// TLS from the first byte (RFC 8314 §3).
    Implicit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// What was negotiated, in the names rustls gives (`TLSv1_3`, `TLS13_AES_256_GCM_SHA384`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInfo {
    pub version: String,
    pub cipher: String,
    /// When the certificate of the server ends, in seconds since 1970.
    pub expires: Option<i64>,
    /// Whom the certificate is for, and who says so; distinguished names (RFC 4514).
    pub subject: Option<String>,
    pub issuer: Option<String>,
    /// The host names the certificate holds.
    pub names: Vec<String>,
}

/// The roots the system trusts; read once, since a system has some hundred files of them.
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured.
pub(super) async fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceCell<Arc<RootCertStore>> = OnceCell::const_new();
    let load = || async {
        let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
        let mut roots = RootCertStore::empty();
        if let Ok(found) = found {
            // Systems carry some roots that rustls cannot read; with none at all, every
            // verification fails and says so.
            roots.add_parsable_certificates(found.certs);
        }
        Arc::new(roots)
    };
    ROOTS.get_or_init(load).await.clone()
}

/// What makes the handshake for `policy`, trusting `roots`.
pub(super) fn connector(policy: TlsPolicy, roots: Arc<RootCertStore>) -> io::Result<TlsConnector> {
    let provider = Arc::new(ring::default_provider());
    let versions: &[_] = match policy.min_version {
        TlsVersion::Tls12 => &[&rustls::version::TLS12, &rustls::version::TLS13],
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(io::Error::other)?;
    let config = if policy.verify {
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { provider }))
            .with_no_client_auth()
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The name the certificate must carry; also sent as SNI.
pub(super) fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let host = host.strip_suffix('.').unwrap_or(host).to_owned();
    ServerName::try_from(host).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// Takes any certificate, and still checks that the other side holds its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
