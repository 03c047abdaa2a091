//! TLS from the first byte and by STARTTLS, against a real server.

use std::{io, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::ring,
    pki_types::CertificateDer,
    version::{TLS12, TLS13},
};
use tokio::net::TcpStream;

use super::*;
use crate::smtp::{scripted::Script, tls, wire::Wire};

const BOTH: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];

fn server_for(
    names: &[&str],
    versions: &[&'static SupportedProtocolVersion],
) -> (Arc<ServerConfig>, CertificateDer<'static>) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = made.cert.der().clone();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    (Arc::new(config), certificate)
}

fn server() -> Arc<ServerConfig> {
    server_for(&["127.0.0.1"], BOTH).0
}

fn with_tls(peer: &Peer, mode: TlsMode, verify: bool) -> Endpoint {
    let tls = TlsPolicy { mode, verify, min_version: TlsVersion::Tls12 };
    Endpoint { tls, ..endpoint(peer) }
}

#[tokio::test]
async fn implicit_tls_comes_before_the_greeting() {
    let script = Script::new().tls(&server()).greets(&["AUTH PLAIN"]);
    let script = script.expect("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm").send("235 ok");
    let peer = script.expect("QUIT").send("221 bye").start().await;
    let mut endpoint = with_tls(&peer, TlsMode::Implicit, false);
    endpoint.credentials = tim();
    endpoint.tls.min_version = TlsVersion::Tls13;
    let session = Session::open(&endpoint, &patient()).await.unwrap();
    let info = session.tls_info().unwrap();
    assert_eq!(info.version, "TLSv1_3");
    assert!(info.cipher.starts_with("TLS13_"), "{info:?}");
    session.quit().await;
    peer.done().await;
}

#[tokio::test]
async fn starttls_forgets_what_was_offered_in_clear() {
    for mode in [TlsMode::StartTls, TlsMode::Opportunistic] {
        let script = Script::new().greets(&["STARTTLS", "PIPELINING", "AUTH PLAIN"]);
        let script = script.expect("STARTTLS").send("220 go").tls(&server()).hello(&["DSN"]);
        let peer = script.start().await;
        let mut session = Session::open(&with_tls(&peer, mode, false), &patient()).await.unwrap();
        assert!(session.tls_info().is_some());
        assert!(session.capabilities().dsn && !session.capabilities().pipelining);
        assert!(session.is_idle());
    }
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused() {
    let peer = Script::new().fail_tls(&server()).start().await;
    let fault = open_fault(&with_tls(&peer, TlsMode::Implicit, true)).await;
    assert!(matches!(fault, Fault { phase: Phase::Tls, kind: FaultKind::Tls(_) }), "{fault:?}");
    peer.done().await;

    let script = Script::new().greets(&["STARTTLS"]).expect("STARTTLS").send("220 go");
    let peer = script.fail_tls(&server()).start().await;
    let fault = open_fault(&with_tls(&peer, TlsMode::Opportunistic, true)).await;
    assert!(matches!(fault, Fault { phase: Phase::Tls, kind: FaultKind::Tls(_) }), "{fault:?}");
    peer.done().await;
}

/// The handshake with a root of our own, for a host of this name.
async fn handshake(peer: &Peer, root: &CertificateDer<'static>, host: &str) -> Result<(), Fault> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let policy = with_tls(peer, TlsMode::Implicit, true).tls;
    let connector = tls::connector(policy, Arc::new(roots)).unwrap();
    let wire = Wire::new(TcpStream::connect(peer.address).await.unwrap(), patient());
    wire.secure(connector, tls::server_name(host).unwrap()).await.map(drop)
}

#[tokio::test]
async fn a_certificate_is_good_only_for_its_own_name() {
    let (config, root) = server_for(&["mail.example"], BOTH);
    let peer = Script::new().tls(&config).start().await;
    handshake(&peer, &root, "mail.example.").await.unwrap();
    let peer = Script::new().fail_tls(&config).start().await;
    let fault = handshake(&peer, &root, "other.example").await.unwrap_err();
    assert!(matches!(fault, Fault { phase: Phase::Tls, kind: FaultKind::Tls(_) }));
    peer.done().await;
}

#[tokio::test]
async fn a_version_that_is_too_old_is_refused() {
    let (old, _) = server_for(&["127.0.0.1"], &[&TLS12]);
    let peer = Script::new().fail_tls(&old).start().await;
    let mut endpoint = with_tls(&peer, TlsMode::Implicit, false);
    endpoint.tls.min_version = TlsVersion::Tls13;
    let fault = open_fault(&endpoint).await;
    assert!(matches!(fault, Fault { phase: Phase::Tls, kind: FaultKind::Tls(_) }), "{fault:?}");
}

#[tokio::test]
async fn required_tls_that_is_not_offered_ends_the_conversation() {
    let peer = Script::new().greets(&["PIPELINING"]).gone().start().await;
    let fault = open_fault(&with_tls(&peer, TlsMode::StartTls, false)).await;
    assert!(matches!(fault, Fault { phase: Phase::Tls, kind: FaultKind::TlsNotOffered }));
    peer.done().await;
}

#[tokio::test]
async fn opportunistic_tls_does_without() {
    let peer = Script::new().greets(&["PIPELINING"]).start().await;
    let endpoint = with_tls(&peer, TlsMode::Opportunistic, true);
    assert_eq!(Session::open(&endpoint, &patient()).await.unwrap().tls_info(), None);

    let script = Script::new().greets(&["STARTTLS"]).expect("STARTTLS").send("454 not now");
    let peer = script.start().await;
    let endpoint = with_tls(&peer, TlsMode::Opportunistic, true);
    assert_eq!(Session::open(&endpoint, &patient()).await.unwrap().tls_info(), None);
}

#[tokio::test]
async fn required_tls_that_is_refused_ends_the_conversation() {
    let script = Script::new().greets(&["STARTTLS"]).expect("STARTTLS").send("454 not now");
    let peer = script.gone().start().await;
    let fault = open_fault(&with_tls(&peer, TlsMode::StartTls, false)).await;
    assert_said(&fault, Phase::Tls, 454);
    peer.done().await;
}

#[tokio::test]
async fn bytes_behind_the_reply_to_starttls_are_an_attack() {
    for injected in ["250 2.0.0 fine\r\n", "550 no\r\n", "2", "\u{16}\u{3}\u{3}", "no reply\r\n"] {
        let script = Script::new().greets(&["STARTTLS"]).expect("STARTTLS");
        let peer = script.raw(&format!("220 go\r\n{injected}")).gone().start().await;
        let fault = open_fault(&with_tls(&peer, TlsMode::StartTls, false)).await;
        assert_eq!(fault.phase, Phase::Tls);
        assert!(matches!(fault.kind, FaultKind::InjectedBytes), "{injected:?}: {fault:?}");
        peer.done().await;
    }
}

#[tokio::test]
async fn a_mute_or_absent_handshake_is_a_fault_of_tls() {
    let peer = Script::new().start().await;
    let endpoint = with_tls(&peer, TlsMode::Implicit, false);
    let fault = Session::open(&endpoint, &hasty(Phase::Tls)).await.unwrap_err();
    assert_timed_out(&fault, Phase::Tls);

    let script = Script::new().greets(&["STARTTLS"]).expect("STARTTLS").send("220 go");
    let peer = script.close().start().await;
    assert_closed(&open_fault(&with_tls(&peer, TlsMode::StartTls, false)).await, Phase::Tls);

    let peer = Script::new().send("220 in clear").start().await;
    let fault = open_fault(&with_tls(&peer, TlsMode::Implicit, false)).await;
    let FaultKind::Tls(error) = fault.kind else { panic!("{fault:?}") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}
