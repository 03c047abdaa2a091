//! Relays that cannot be found, reached, trusted or entered.

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, date_time_ymd};
use rustls::{ServerConfig, crypto::ring, pki_types::CertificateDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::Setup;
use crate::support::relay::{Script, ScriptedRelay};

#[tokio::test]
async fn a_relay_that_does_not_resolve_or_refuses_is_told() {
    let setup = Setup::new().await;
    setup.relay("nowhere.invalid", 587, "", "").await;
    let findings = setup.examine().await;
    assert_eq!(findings.code, 2);
    findings.is("relay.dns", "main", "fail", "nowhere.invalid", "correct the host");
    findings.only(&["relay.dns"]);

    setup.sql("delete from relays").await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    setup.relay("127.0.0.1", port, "", "").await;
    let findings = setup.examine().await;
    findings.is("relay.connect", "main", "fail", "refused", "start that server");
    findings.only(&["relay.connect"]);

    setup.sql("delete from relays").await;
    setup.examine().await.is("relays", "", "fail", "nothing can leave", "add one");
}

#[tokio::test]
async fn a_refused_login_and_a_missing_password_are_told() {
    let mut setup = Setup::new().await;
    setup.set("SMTP_USER", "app");
    setup.set("SMTP_PASS", super::SECRET);
    let script = Script { auth: Some("535 5.7.8 no such login"), ..Script::default() };
    let relay = ScriptedRelay::start(script).await;
    let columns = ", user_env_var, password_env_var";
    setup.relay("127.0.0.1", relay.port, columns, ", 'SMTP_USER', 'SMTP_PASS'").await;
    let findings = setup.examine().await;
    findings.is("relay.auth", "main", "fail", "535", "username and password");
    findings.only(&["relay.auth"]);

    setup.env.remove("SMTP_PASS");
    let findings = setup.examine().await;
    findings.is("relay.credentials", "main", "fail", "no variable", "SMTP_");
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_and_one_that_is_over_are_told_apart() {
    let mut setup = Setup::new().await;
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let port = serve(made.cert.der().clone(), &made.signing_key).await;
    setup.relay("127.0.0.1", port, ", reject_unauthorized", ", true").await;
    let findings = setup.examine().await;
    findings.is("relay.tls", "main", "fail", "UnknownIssuer", "known authority");
    findings.only(&["relay.tls"]);

    // An authority that this doctor trusts, and what it signed for a time that is over.
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let roots = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(roots.path(), authority.pem()).unwrap();
    setup.set("SSL_CERT_FILE", roots.path().to_str().unwrap());
    let key = KeyPair::generate().unwrap();
    for (end, state, found, fix) in [
        (date_time_ymd(2021, 1, 1), "fail", "xpired", "renew the certificate"),
        (date_time_ymd(4000, 1, 1), "ok", "days", ""),
    ] {
        let mut leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        (leaf.not_before, leaf.not_after) = (date_time_ymd(2020, 1, 1), end);
        let leaf = leaf.signed_by(&key, &authority).unwrap();
        let port = serve(leaf.der().clone(), &key).await;
        setup.sql(&format!("update relays set port = {port}, updated_at = now()")).await;
        let findings = setup.examine().await;
        if state == "ok" {
            let it = findings.find("relay", "main");
            assert!(it["found"].as_str().unwrap().contains(found), "{it:#}");
        } else {
            findings.is("relay.tls", "main", state, found, fix);
        }
    }
}

/// A relay with TLS from the first byte that greets, and knows EHLO and QUIT.
async fn serve(certificate: CertificateDer<'static>, key: &KeyPair) -> u16 {
    let key = key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio_util::task::TaskTracker::new().spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let mut bytes = [0; 512];
            let _ = client.write_all(b"220 here\r\n").await;
            while client.read(&mut bytes).await.is_ok_and(|n| n > 0) {
                let _ = client.write_all(b"250 ok\r\n").await;
            }
        }
    });
    port
}
