//! Ways to an engine, and engines of other versions.

use std::{path::Path, sync::Arc, time::Duration};

use postroom::outside::docker::{Command, Engine, EngineFault, ExecFault, Limits, Place};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring, server::WebPkiClientVerifier};

use super::{
    Box, client,
    front::{Front, Rule, Rules, version},
    patient,
};

/// All that is asked of an engine comes through: input and its end, output, code, deadline.
async fn serves(it: &Box, engine: &Arc<Engine>) {
    let said = engine.exec(&it.name, Command::new(["cat"]).stdin("in and out")).await.unwrap();
    assert_eq!((said.exit_code, &said.stdout[..]), (0, &b"in and out"[..]));
    assert!(engine.inspect(&it.name).await.unwrap().state.runs());
    engine.ping().await.unwrap();
    assert!(!engine.version().await.unwrap().engine.is_empty());
    let late = Command::new(["sleep", "7009"]).deadline(Duration::from_secs(1));
    let late = engine.exec(&it.name, late).await;
    assert!(matches!(late, Err(ExecFault::TimedOut { leftover: false, .. })), "{late:?}");
}

#[tokio::test]
async fn a_socket_tcp_and_tls_lead_to_the_same_engine() {
    let it = Box::new("ways").await;
    serves(&it, &it.engine).await;
    let pass: Rules = |_, _| Rule::Pass;
    let clear = Front::start(it.host.socket(), pass).await;
    serves(&it, &client(Place::Tcp(clear.address.clone()), Limits::default())).await;

    let folder = tempfile::tempdir().unwrap();
    let server = certificates(folder.path());
    let tls = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let front = Front::with_tls(it.host.socket(), pass, Some(tls)).await;
    let host = front.address.replace("127.0.0.1", "localhost");
    let place = Place::Tls { host: host.clone(), certificates: folder.path().to_owned() };
    serves(&it, &client(place, Limits::default())).await;

    // A server that nobody vouches for is not spoken to.
    let other = tempfile::tempdir().unwrap();
    certificates(other.path());
    let place = Place::Tls { host, certificates: other.path().to_owned() };
    let stranger = client(place, Limits::default()).ping().await;
    match stranger {
        Err(EngineFault::Unreached { why, .. }) => assert!(why.contains("certificate"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_socket_proxy_with_our_rules_leads_there_too() {
    let it = Box::new("proxied").await;
    let rules = include_str!("../../../deploy/socket-proxy/haproxy.cfg");
    let rules = rules
        .replace("(mailserver|nginx)", it.name.as_str())
        .replace("/containers/mailserver/", &format!("/containers/{}/", it.name));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, rules).unwrap();
    let (proxy, image) = (it.host.name("socket-proxy"), it.host.name("standins"));
    let socket = format!("{}:/var/run/docker.sock:ro", it.host.socket());
    let rules = format!("{}:/haproxy.cfg:ro", file.display());
    let network = it.host.name("proxied");
    it.docker(&["network", "create", &network]).await;
    let options = ["run", "-d", "--name", &proxy, "--network", &network, "-p", "127.0.0.1::2375"];
    let volumes = ["-v", &socket, "-v", &rules, &image, "haproxy", "-db", "-f", "/haproxy.cfg"];
    it.docker(&[&options[..], &volumes[..]].concat()).await;
    let port = it.docker(&["port", &proxy, "2375/tcp"]).await;
    let engine = client(Place::Tcp(port), patient(Duration::from_secs(5)));
    crate::house::until("the proxy is up", async || engine.ping().await.is_ok()).await;
    serves(&it, &engine).await;
    let other = Box::new("not-proxied").await;
    let ended = engine.exec(&other.name, Command::new(["true"])).await;
    let is_denied = |fault: &EngineFault| matches!(fault, EngineFault::Refused { status: 403, .. });
    assert!(matches!(&ended, Err(ExecFault::Engine(fault)) if is_denied(fault)), "{ended:?}");
}

/// What engines of two ages do with the version that a path asks for (measured on 20.10; Docker 29
/// raised its oldest to 1.44).
const AGES: [(&str, Rules); 2] = [
    ("20.10", |_, path| match version(path) {
        Some(42..) => {
            Rule::Say(400, "client version is too new. Maximum supported API version is 1.41")
        }
        _ => Rule::Pass,
    }),
    ("29", |_, path| match version(path) {
        Some(..=43) => {
            Rule::Say(400, "client version is too old. Minimum supported API version is 1.44")
        }
        Some(55..) => {
            Rule::Say(400, "client version is too new. Maximum supported API version is 1.54")
        }
        _ => Rule::Pass,
    }),
];

#[tokio::test]
async fn engines_of_all_ages_are_served() {
    let it = Box::new("ages").await;
    for (_age, rules) in AGES {
        let front = Front::start(it.host.socket(), rules).await;
        serves(&it, &client(Place::Tcp(front.address.clone()), Limits::default())).await;
    }
}

#[tokio::test]
async fn an_engine_that_is_away_refuses_or_babbles_is_told() {
    let it = Box::new("refuses").await;
    let run = async |place: Place| {
        let engine = client(place, patient(Duration::from_secs(5)));
        engine.exec(&it.name, Command::new(["true"])).await
    };
    for gone in [Place::Socket("/nowhere/docker.sock".into()), Place::Tcp("127.0.0.1:1".to_owned())]
    {
        let ended = run(gone).await;
        assert!(
            matches!(ended, Err(ExecFault::Engine(EngineFault::Unreached { .. }))),
            "{ended:?}"
        );
    }
    let denies = Front::start(it.host.socket(), |_, _| Rule::Say(403, "no")).await;
    let ended = run(Place::Tcp(denies.address.clone())).await;
    let is_denied = |fault: &EngineFault| matches!(fault, EngineFault::Refused { status: 403, .. });
    assert!(matches!(&ended, Err(ExecFault::Engine(fault)) if is_denied(fault)), "{ended:?}");
    let babbles = Front::start(it.host.socket(), |_, _| Rule::Say(201, "x")).await;
    let ended = run(Place::Tcp(babbles.address.clone())).await;
    assert!(matches!(ended, Err(ExecFault::Engine(EngineFault::Garbled { .. }))), "{ended:?}");
}

/// An authority, a server `localhost` and a client, as DOCKER_CERT_PATH holds them; the server's side.
fn certificates(folder: &Path) -> ServerConfig {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &authority).unwrap(), key)
    };
    let ((client, client_key), (server, server_key)) = (signed("client"), signed("localhost"));
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    write("ca.pem", authority.pem());
    write("cert.pem", client.pem());
    write("key.pem", client_key.serialize_pem());

    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![server.der().clone()],
            server_key.serialize_der().try_into().unwrap(),
        )
        .unwrap()
}
