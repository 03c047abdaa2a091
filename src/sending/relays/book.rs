//! The relays as they are now: who may serve whom, which places are taken, who rests.
//!
//! What is in memory here is this process's own: its places and its breakers. The relays
//! themselves are read again whenever somebody says that they changed, and now and then anyway.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    breaker::{Admission, Breaker, Evidence, Pass, Transition},
    eligible::{self, Candidate},
    slots, store, wire,
};
use crate::{
    address::{EmailAddress, Mailbox},
    app::App,
    error::Result,
    on_unknown::OnUnknown,
    outside::smtp::{Credentials, Endpoint, TlsMode, TlsPolicy, TlsVersion},
    queue::Lane,
};

/// How often the relays are read again though nobody said that they changed.
const FRESH: Duration = Duration::from_secs(5);
/// A lane that nobody can serve still gets a place now and then: its messages must be told so,
/// and expire.
const UNSERVED: usize = 2;

/// A relay that can be used.
#[derive(Debug, Clone)]
pub struct Relay {
    pub id: Uuid,
    pub name: String,
    /// The sender of a message that names none.
    pub from: Option<Mailbox>,
    pub max_connections: usize,
    pub on_unknown: Option<OnUnknown>,
    /// Why it cannot be used though it is active: its credentials are not to be had.
    pub endpoint: std::result::Result<Endpoint, String>,
    candidate: Candidate,
    updated_at: DateTime<Utc>,
}

/// See the module.
pub struct Book {
    app: App,
    relays: RwLock<Arc<Vec<Arc<Relay>>>>,
    state: Mutex<HashMap<Uuid, State>>,
    changed: Notify,
    sandbox_port: AtomicU16,
    turn: AtomicUsize,
    begun: Instant,
}

#[derive(Default)]
struct State {
    taken: usize,
    breaker: Breaker,
}

/// What came of asking for a place.
pub enum Taking {
    Place(Place),
    /// All places are taken.
    Full,
    /// The relay rests after faults.
    Rests,
}

/// A connection's place on a relay; given back when dropped.
pub struct Place {
    book: Arc<Book>,
    pub relay: Arc<Relay>,
    pass: Option<Pass>,
}

impl Book {
    pub async fn open(app: App) -> Result<Arc<Self>> {
        let book = Self::closed(app);
        book.read().await?;
        Ok(book)
    }

    /// A book in which nothing has been read.
    pub fn closed(app: App) -> Arc<Self> {
        Arc::new(Self {
            app,
            relays: RwLock::default(),
            state: Mutex::default(),
            changed: Notify::new(),
            sandbox_port: AtomicU16::new(0),
            turn: AtomicUsize::new(0),
            begun: Instant::now(),
        })
    }

    /// Where this process's sandbox listens.
    pub fn set_sandbox_port(&self, port: u16) {
        self.sandbox_port.store(port, Ordering::Relaxed);
        self.look_again();
    }

    /// Somebody changed a relay.
    pub fn look_again(&self) {
        self.changed.notify_one();
    }

    /// Reads the relays; if that fails, those known stay in use until the next time.
    pub async fn refresh(&self) {
        if let Err(error) = self.read().await {
            tracing::warn!(%error, "the relays could not be read; those known stay in use");
        }
    }

    /// Reads the relays when they change, until told to stop.
    pub async fn keep_fresh(self: Arc<Self>, stop: CancellationToken) {
        loop {
            self.refresh().await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => (),
                () = tokio::time::sleep(FRESH) => (),
            }
        }
    }

    /// Reads the relays.
    pub async fn read(&self) -> Result<()> {
        let rows = store::all(&self.app.workers_db).await?;
        let port = self.sandbox_port.load(Ordering::Relaxed);
        let relays: Vec<Arc<Relay>> = rows
            .into_iter()
            .filter(|row| row.active && (row.kind != "sandbox" || port != 0))
            .map(|row| Arc::new(self.relay(row, port)))
            .collect();
        self.let_changed_ones_try(&relays);
        *self.relays.write().expect("no writer panics") = Arc::new(relays);
        Ok(())
    }

    /// A relay that was changed, its password say, need not rest for what it was before.
    fn let_changed_ones_try(&self, relays: &[Arc<Relay>]) {
        let known = self.all();
        let mut state = self.state.lock().expect("no holder panics");
        for relay in relays {
            let changed =
                known.iter().any(|it| it.id == relay.id && it.updated_at != relay.updated_at);
            if changed && let Some(it) = state.get_mut(&relay.id) {
                it.breaker.on_changed(self.begun.elapsed());
            }
        }
    }

    fn all(&self) -> Arc<Vec<Arc<Relay>>> {
        self.relays.read().expect("no writer panics").clone()
    }

    /// The relays that may carry this sender's mail, the first to be asked first.
    pub fn eligible(&self, sender: &EmailAddress) -> Vec<Arc<Relay>> {
        let relays = self.all();
        let candidates: Vec<Candidate> = relays.iter().map(|it| it.candidate.clone()).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        eligible::eligible(&candidates, sender.domain().as_str(), &sender.lookup_key(), turn)
            .into_iter()
            .map(|at| relays[at].clone())
            .collect()
    }

    /// The sender of a request that names none: that of the first relay whose sender is permitted.
    pub fn default_sender(&self, permitted: impl Fn(&EmailAddress) -> bool) -> Option<Mailbox> {
        self.all()
            .iter()
            .find_map(|relay| relay.from.clone().filter(|from| permitted(from.address())))
    }

    /// How many more messages each lane may begin now.
    pub fn capacity(&self, lanes: &[Lane]) -> Vec<usize> {
        let relays = self.all();
        let candidates: Vec<Candidate> = relays.iter().map(|it| it.candidate.clone()).collect();
        let state = self.state.lock().expect("no holder panics");
        let now = self.begun.elapsed();
        let free: Vec<usize> = relays
            .iter()
            .map(|relay| match state.get(&relay.id) {
                Some(it) if it.breaker.rests(now) => 0,
                Some(it) => relay.max_connections.saturating_sub(it.taken),
                None => relay.max_connections,
            })
            .collect();
        drop(state);
        let served: Vec<Vec<usize>> =
            lanes.iter().map(|lane| eligible::lane_relays(&candidates, &lane.name)).collect();
        let wants: Vec<slots::Lane<'_>> = lanes
            .iter()
            .zip(&served)
            .map(|(lane, relays)| slots::Lane { relays, in_use: lane.running })
            .collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut shares = slots::share(&wants, &free, usize::MAX, turn);
        for ((share, lane), relays) in shares.iter_mut().zip(lanes).zip(&served) {
            if relays.is_empty() {
                *share = UNSERVED.saturating_sub(lane.running);
            }
        }
        shares
    }

    /// Takes a place on a relay, if one is free and the relay does not rest.
    pub fn take(self: &Arc<Self>, relay: &Arc<Relay>) -> Taking {
        let mut state = self.state.lock().expect("no holder panics");
        let it = state.entry(relay.id).or_default();
        if it.taken >= relay.max_connections {
            return Taking::Full;
        }
        let pass = match it.breaker.admits(self.begun.elapsed()) {
            Admission::Slot(pass) | Admission::Probe(pass) => pass,
            Admission::No { .. } => return Taking::Rests,
        };
        it.taken += 1;
        Taking::Place(Place { book: self.clone(), relay: relay.clone(), pass: Some(pass) })
    }

    fn relay(&self, row: store::Row, sandbox_port: u16) -> Relay {
        let sandbox = row.kind == "sandbox";
        let candidate = Candidate {
            relay_id: row.relay_id,
            priority: row.priority,
            active: row.active,
            sandbox,
            domain: row.domain.clone(),
            from_address: row.from_address.to_lowercase(),
            any_sender: row.any_sender,
            created_at: row.created_at,
        };
        let on_unknown = match row.on_unknown.as_deref() {
            Some("hold") => Some(OnUnknown::Hold),
            Some("resend") => Some(OnUnknown::Resend),
            _ => None,
        };
        Relay {
            id: row.relay_id,
            name: row.name.clone(),
            from: sender(&row),
            max_connections: usize::try_from(row.max_connections).unwrap_or(1),
            on_unknown,
            endpoint: self.endpoint(&row, if sandbox { Some(sandbox_port) } else { None }),
            candidate,
            updated_at: row.updated_at,
        }
    }

    fn endpoint(
        &self,
        row: &store::Row,
        sandbox_port: Option<u16>,
    ) -> std::result::Result<Endpoint, String> {
        let config = &self.app.config.sending;
        let mode = match (row.secure, row.require_tls, row.kind.as_str()) {
            (_, _, "sandbox") => TlsMode::None,
            (true, _, _) => TlsMode::Implicit,
            (false, true, _) => TlsMode::StartTls,
            (false, false, _) => TlsMode::Opportunistic,
        };
        let min_version = match row.min_tls_version.as_deref() {
            Some("TLSv1.3") => TlsVersion::Tls13,
            _ => TlsVersion::Tls12,
        };
        let verify = row.reject_unauthorized.unwrap_or(config.tls_reject_unauthorized);
        Ok(Endpoint {
            host: row.host.clone(),
            port: sandbox_port.unwrap_or_else(|| u16::try_from(row.port).unwrap_or(0)),
            tls: TlsPolicy { mode, verify, min_version },
            helo_name: row.helo_name.clone().unwrap_or_else(|| config.helo_name.clone()),
            credentials: self.credentials(row)?,
            clear_auth: row.allow_clear_auth,
        })
    }

    fn credentials(&self, row: &store::Row) -> std::result::Result<Option<Credentials>, String> {
        let named = |name: &str| {
            self.app.config.smtp_credentials.read(name).cloned().map_err(|error| error.to_string())
        };
        let user = match (&row.username, &row.user_env_var) {
            (Some(user), _) => user.clone(),
            (None, Some(name)) => secrecy::ExposeSecret::expose_secret(&named(name)?).to_owned(),
            (None, None) => return Ok(None),
        };
        let password = match (&row.password_sealed, &row.password_env_var) {
            (Some(sealed), _) => {
                self.app.secrets.open(sealed, &wire::bound_to(row.relay_id)).map_err(|_| {
                    "its sealed password cannot be opened with the present key".to_owned()
                })?
            }
            (None, Some(name)) => named(name)?,
            (None, None) => SecretString::from(String::new()),
        };
        Ok(Some(Credentials { user, password }))
    }
}

fn sender(row: &store::Row) -> Option<Mailbox> {
    let address: EmailAddress = row.from_address.parse().ok()?;
    Mailbox::new(row.from_name.as_deref(), address).ok()
}

impl Place {
    /// What the session told about the relay.
    pub fn report(&mut self, evidence: Evidence) {
        let Some(pass) = self.pass else { return };
        let mut state = self.book.state.lock().expect("no holder panics");
        let it = state.entry(self.relay.id).or_default();
        match it.breaker.report(pass, self.book.begun.elapsed(), evidence) {
            Some(Transition::Opened { .. }) => {
                tracing::warn!(relay.id = %self.relay.id, "the relay is given a rest");
            }
            Some(Transition::Closed) => {
                tracing::info!(relay.id = %self.relay.id, "the relay is back")
            }
            Some(Transition::Prolonged { .. }) | None => (),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.book.state.lock().expect("no holder panics");
        let it = state.entry(self.relay.id).or_default();
        it.taken = it.taken.saturating_sub(1);
    }
}
