//! The client against scripted servers.

use std::time::Duration;

use super::{
    Credentials, Deadlines, Endpoint, Envelope, Fault, FaultKind, Phase, Rcpt, Session, TlsMode,
    TlsPolicy, TlsVersion, scripted::Peer,
};

mod broken;
mod opening;
mod secured;
mod transacting;

/// The deadline of the phase under test.
pub(super) const SOON: Duration = Duration::from_millis(40);

pub(super) fn envelope(recipients: &[&str]) -> Envelope {
    let rcpt = |&address: &&str| Rcpt { address: address.to_owned(), notify: None, orcpt: None };
    Envelope {
        sender: Some("me@example.org".into()),
        recipients: recipients.iter().map(rcpt).collect(),
        size: 10,
        smtputf8: false,
        eight_bit: false,
        envid: None,
        ret_headers_only: false,
    }
}

fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint {
        host: peer.address.ip().to_string(),
        port: peer.address.port(),
        tls: TlsPolicy { mode: TlsMode::None, verify: true, min_version: TlsVersion::Tls12 },
        helo_name: "client.example".into(),
        credentials: None,
        clear_auth: false,
    }
}

fn tim() -> Option<Credentials> {
    Some(Credentials { user: "tim".into(), password: "tanstaaftanstaaf".into() })
}

/// Deadlines that end a test that hangs.
fn patient() -> Deadlines {
    let long = Duration::from_secs(10);
    Deadlines {
        connect: long,
        tls: long,
        greeting: long,
        ehlo: long,
        auth: long,
        mail: long,
        rcpt: long,
        data: long,
        dot: long,
    }
}

fn hasty(phase: Phase) -> Deadlines {
    let mut deadlines = patient();
    match phase {
        Phase::Dns | Phase::Connect => deadlines.connect = SOON,
        Phase::Tls => deadlines.tls = SOON,
        Phase::Greeting => deadlines.greeting = SOON,
        Phase::Ehlo => deadlines.ehlo = SOON,
        Phase::Auth => deadlines.auth = SOON,
        Phase::Mail => deadlines.mail = SOON,
        Phase::Rcpt => deadlines.rcpt = SOON,
        Phase::Data => deadlines.data = SOON,
        Phase::Dot => deadlines.dot = SOON,
    }
    deadlines
}

async fn open(peer: &Peer) -> Session {
    Session::open(&endpoint(peer), &patient()).await.unwrap()
}

async fn open_fault(endpoint: &Endpoint) -> Fault {
    Session::open(endpoint, &patient()).await.unwrap_err()
}

#[track_caller]
fn assert_timed_out(fault: &Fault, phase: Phase) {
    assert_eq!(fault.phase, phase, "{fault:?}");
    assert!(matches!(fault.kind, FaultKind::TimedOut(SOON)), "{fault:?}");
}

#[track_caller]
fn assert_closed(fault: &Fault, phase: Phase) {
    assert_eq!(fault.phase, phase, "{fault:?}");
    assert!(matches!(fault.kind, FaultKind::Closed), "{fault:?}");
}

#[track_caller]
fn assert_said(fault: &Fault, phase: Phase, code: u16) {
    assert_eq!(fault.phase, phase, "{fault:?}");
    let FaultKind::Reply(reply) = &fault.kind else { panic!("{fault:?}") };
    assert_eq!(reply.code, code);
}

#[track_caller]
fn assert_protocol(fault: &Fault, phase: Phase) {
    assert_eq!(fault.phase, phase, "{fault:?}");
    assert!(matches!(fault.kind, FaultKind::Protocol(_)), "{fault:?}");
}
