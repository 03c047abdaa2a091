//! The greeting, EHLO and AUTH.

use std::{net::IpAddr, time::Duration};

use super::*;
use crate::smtp::scripted::Script;

#[tokio::test]
async fn a_session_opens_and_says_goodbye() {
    let script = Script::new().greets(&["PIPELINING", "SIZE 1000"]).expect("QUIT").send("221 bye");
    let peer = script.gone().start().await;
    let mut session = open(&peer).await;
    assert!(session.capabilities().pipelining);
    assert_eq!(session.capabilities().size_limit, Some(1000));
    assert_eq!((session.peer(), session.tls_info()), (peer.address, None));
    assert!(session.is_idle());
    session.quit().await;
    peer.done().await;
}

#[tokio::test]
async fn addresses_may_be_resolved_elsewhere() {
    let peer = Script::new().greets(&[]).start().await;
    let endpoint = Endpoint { host: "nowhere.invalid".into(), ..endpoint(&peer) };
    let session = Session::connect_from(&endpoint, &[peer.address], &patient()).await.unwrap();
    assert_eq!(session.peer(), peer.address);
}

#[tokio::test]
async fn a_host_without_address_is_a_fault_of_the_name() {
    let peer = Script::new().start().await;
    let endpoint = Endpoint { host: "nowhere.invalid".into(), ..endpoint(&peer) };
    let fault = open_fault(&endpoint).await;
    assert!(matches!(fault, Fault { phase: Phase::Dns, kind: FaultKind::Resolve(_) }));
}

#[tokio::test]
async fn replies_come_in_any_number_of_reads() {
    let pause = Duration::from_millis(5);
    let script = Script::new().raw("2").delay(pause).raw("20-a\r").delay(pause).raw("\n220 b\r\n");
    let script = script.expect("EHLO client.example").raw("250-x\r\n250-SI").delay(pause);
    let peer = script.raw("ZE 7\r\n250 DSN\r\n").start().await;
    let session = open(&peer).await;
    assert_eq!(session.capabilities().size_limit, Some(7));
    assert!(session.capabilities().dsn);
}

#[tokio::test]
async fn a_server_that_does_not_know_ehlo_is_told_helo() {
    for code in [500, 502] {
        let script = Script::new().send("220 old").expect("EHLO client.example");
        let script = script.send(&format!("{code} what?")).expect("HELO client.example");
        let peer = script.send("250-old\n250-PIPELINING\n250 SIZE 5").start().await;
        assert_eq!(*open(&peer).await.capabilities(), Default::default());
    }
}

#[tokio::test]
async fn a_refusal_ends_the_opening_where_it_was_said() {
    let peer = Script::new().send("554 5.7.1 go away").start().await;
    assert_said(&open_fault(&endpoint(&peer)).await, Phase::Greeting, 554);

    let script = Script::new().send("220 hi").expect("EHLO client.example").send("550 bad name");
    assert_said(&open_fault(&endpoint(&script.start().await)).await, Phase::Ehlo, 550);

    let script = Script::new().send("220 hi").expect("EHLO client.example").send("500 what?");
    let peer = script.expect("HELO client.example").send("421 bye").close().start().await;
    assert_said(&open_fault(&endpoint(&peer)).await, Phase::Ehlo, 421);
}

#[tokio::test]
async fn what_is_not_smtp_is_a_fault() {
    for greeting in ["HTTP/1.1 400 Bad Request", "250 hi", "354 hi", "220-a\n250 b"] {
        let peer = Script::new().send(greeting).start().await;
        assert_protocol(&open_fault(&endpoint(&peer)).await, Phase::Greeting);
    }
    let peer = Script::new().raw(&"2".repeat(10_000)).start().await;
    assert_protocol(&open_fault(&endpoint(&peer)).await, Phase::Greeting);
}

#[tokio::test]
async fn a_server_that_speaks_out_of_turn_is_left() {
    let peer = Script::new().raw("220 hi\r\n250 PIPELINING\r\n").gone().start().await;
    assert_protocol(&open_fault(&endpoint(&peer)).await, Phase::Ehlo);
    peer.done().await;
}

#[tokio::test]
async fn a_name_for_ehlo_cannot_carry_a_command() {
    let peer = Script::new().start().await;
    let endpoint = Endpoint { helo_name: "a\r\nMAIL".into(), ..endpoint(&peer) };
    let fault = open_fault(&endpoint).await;
    assert!(matches!(fault, Fault { phase: Phase::Ehlo, kind: FaultKind::Malformed(_) }));
}

#[tokio::test]
async fn plain_is_preferred_and_said_in_one_line() {
    let script = Script::new().greets(&["AUTH LOGIN PLAIN"]);
    let script = script.expect("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm").send("235 2.7.0 ok");
    let peer = script.start().await;
    let endpoint = Endpoint { credentials: tim(), ..endpoint(&peer) };
    assert!(Session::open(&endpoint, &patient()).await.unwrap().is_idle());
}

#[tokio::test]
async fn login_is_spoken_where_plain_is_not_offered() {
    let script = Script::new().greets(&["AUTH=LOGIN"]);
    let script = script.expect("AUTH LOGIN").send("334 VXNlcm5hbWU6");
    let script = script.expect("dGlt").send("334 UGFzc3dvcmQ6");
    let peer = script.expect("dGFuc3RhYWZ0YW5zdGFhZg==").send("235 ok").start().await;
    let endpoint = Endpoint { credentials: tim(), ..endpoint(&peer) };
    assert!(Session::open(&endpoint, &patient()).await.unwrap().is_idle());
}

#[tokio::test]
async fn a_wrong_password_is_a_fault_that_does_not_tell_it() {
    let script = Script::new().greets(&["AUTH PLAIN"]);
    let script = script.expect("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
    let peer = script.send("535 5.7.8 no").gone().start().await;
    let endpoint = Endpoint { credentials: tim(), ..endpoint(&peer) };
    let fault = open_fault(&endpoint).await;
    assert_said(&fault, Phase::Auth, 535);
    for shown in [format!("{fault:?} {fault} {}", fault.kind), format!("{endpoint:?}")] {
        assert!(!shown.contains("tanstaaf") && !shown.contains("AHRpbQB0"), "{shown}");
    }
    peer.done().await;
}

#[tokio::test]
async fn no_mechanism_no_session() {
    let peer = Script::new().greets(&["AUTH XOAUTH2"]).gone().start().await;
    let endpoint = Endpoint { credentials: tim(), ..endpoint(&peer) };
    let fault = open_fault(&endpoint).await;
    assert!(matches!(fault, Fault { phase: Phase::Auth, kind: FaultKind::AuthNotOffered }));
    peer.done().await;
}

#[tokio::test]
async fn a_password_crosses_no_network_in_clear_unless_allowed() {
    let peer = Script::new().start().await;
    let strict = endpoint(&peer);
    let lax = Endpoint { clear_auth: true, ..strict.clone() };
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    for near in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
        assert!(strict.allows_clear_auth(ip(near)), "{near}");
    }
    for far in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "0.0.0.0"] {
        assert!(!strict.allows_clear_auth(ip(far)), "{far}");
        assert!(lax.allows_clear_auth(ip(far)), "{far}");
    }
}
