//! Trying a relay: it is spoken to as for a message, up to the login, and each phase is told.
//! Nothing is sent.

use std::{
    collections::HashSet,
    sync::Mutex,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Book, NO_RELAY, open_session, store};
use crate::{
    error::{Error, Result},
    outside::smtp::{Endpoint, Fault, FaultKind, Phase, Session, TlsMode},
};

/// However long its phases may take, a relay gets this much.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PhaseState)]
pub enum Outcome {
    Ok,
    Failed,
    /// It was not come to, or there is nothing to do in it.
    Skipped,
}

/// One phase of the conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseReport {
    /// `dns`, `connect`, `tls`, `greeting`, `ehlo` or `auth`, in the order they were gone through.
    pub phase: &'static str,
    pub state: Outcome,
    /// What was found: the address, what EHLO offers, how the login was made.
    pub found: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// The reply it failed with.
    pub code: Option<u16>,
}

/// The certificate that the relay showed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    pub subject: Option<String>,
    pub issuer: Option<String>,
    pub names: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
    /// Whether it had to be valid for this host, and was.
    pub verified: bool,
}

/// What a trial of a relay found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// A message could be given to it now.
    pub ok: bool,
    /// Milliseconds for all of it.
    pub ms: u64,
    pub phases: Vec<PhaseReport>,
    pub certificate: Option<Certificate>,
}

/// The relays that are being tried: one trial each, since a few refused logins can make a server
/// shut us out.
#[derive(Default)]
pub struct Trials(Mutex<HashSet<Uuid>>);

struct Running<'a>(&'a Trials, Uuid);

impl Trials {
    fn begin(&self, id: Uuid) -> Result<Running<'_>> {
        let new = self.0.lock().expect("no holder panics").insert(id);
        if !new {
            return Err(Error::conflict("TEST_RUNNING", "this relay is being tried already"));
        }
        Ok(Running(self, id))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.lock().expect("no holder panics").remove(&self.1);
    }
}

/// Tries a relay, active or not.
pub async fn probe(book: &Book, id: Uuid) -> Result<Report> {
    let app = book.app();
    let row = store::one(&app.db, id).await?.ok_or(NO_RELAY)?;
    let _running = book.trials.begin(id)?;
    let begun = Instant::now();
    let report = match book.as_relay(row).endpoint {
        Ok(endpoint) => {
            let order = order(endpoint.tls.mode);
            match tokio::time::timeout(PATIENCE, open_session(app, &endpoint)).await {
                Ok(Ok(session)) => well(&endpoint, session).await,
                Ok(Err(fault)) => broken(&order, fault.phase, words(&fault), code(&fault)),
                Err(_) => {
                    let why = format!("no end within {} s", PATIENCE.as_secs());
                    broken(&order, Phase::Connect, why, None)
                }
            }
        }
        Err(why) => broken(&order(TlsMode::None), Phase::Auth, why, None),
    };
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Report { ms, ..report })
}

fn order(mode: TlsMode) -> [Phase; 6] {
    use Phase::{Auth, Connect, Dns, Ehlo, Greeting, Tls};
    match mode {
        TlsMode::Implicit => [Dns, Connect, Tls, Greeting, Ehlo, Auth],
        _ => [Dns, Connect, Greeting, Ehlo, Tls, Auth],
    }
}

async fn well(endpoint: &Endpoint, session: Session) -> Report {
    let tls = session.tls_info().cloned();
    let offers = session.capabilities();
    let offered = [
        ("PIPELINING", offers.pipelining),
        ("SIZE", offers.size),
        ("8BITMIME", offers.eight_bit_mime),
        ("SMTPUTF8", offers.smtputf8),
        ("DSN", offers.dsn),
        ("ENHANCEDSTATUSCODES", offers.enhanced_status_codes),
    ];
    let offered: Vec<&str> = offered.iter().filter(|it| it.1).map(|it| it.0).collect();
    let peer = session.peer().to_string();
    let phases = order(endpoint.tls.mode).map(|phase| {
        let (state, found) = match phase {
            Phase::Connect => (Outcome::Ok, Some(peer.clone())),
            Phase::Ehlo => (Outcome::Ok, Some(offered.join(" "))),
            Phase::Tls => match &tls {
                Some(tls) => (Outcome::Ok, Some(format!("{} {}", tls.version, tls.cipher))),
                None => (Outcome::Skipped, Some("in clear".to_owned())),
            },
            Phase::Auth if endpoint.credentials.is_none() => {
                (Outcome::Skipped, Some("there are no credentials".to_owned()))
            }
            Phase::Auth => (Outcome::Ok, Some("the login was accepted".to_owned())),
            _ => (Outcome::Ok, None),
        };
        PhaseReport { phase: phase.as_str(), state, found, error: None, code: None }
    });
    session.quit().await;
    let certificate = tls.map(|tls| Certificate {
        subject: tls.subject,
        issuer: tls.issuer,
        names: tls.names,
        expires_at: tls.expires.and_then(|at| DateTime::from_timestamp(at, 0)),
        verified: endpoint.tls.verify,
    });
    Report { ok: true, ms: 0, phases: phases.to_vec(), certificate }
}

fn broken(order: &[Phase; 6], failed: Phase, why: String, code: Option<u16>) -> Report {
    let at = order.iter().position(|it| *it == failed).unwrap_or(0);
    let phases = order.iter().enumerate().map(|(nth, phase)| PhaseReport {
        phase: phase.as_str(),
        state: match nth.cmp(&at) {
            std::cmp::Ordering::Less => Outcome::Ok,
            std::cmp::Ordering::Equal => Outcome::Failed,
            std::cmp::Ordering::Greater => Outcome::Skipped,
        },
        found: None,
        error: (nth == at).then(|| why.clone()),
        code: code.filter(|_| nth == at),
    });
    Report { ok: false, ms: 0, phases: phases.collect(), certificate: None }
}

fn words(fault: &Fault) -> String {
    match std::error::Error::source(&fault.kind) {
        Some(source) => format!("{}: {source}", fault.kind),
        None => fault.kind.to_string(),
    }
}

fn code(fault: &Fault) -> Option<u16> {
    match &fault.kind {
        FaultKind::Reply(reply) => Some(reply.code),
        _ => None,
    }
}
