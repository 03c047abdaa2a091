//! The relays as they are now: who may serve whom, which places are taken, who rests.
//!
//! `entry.rs` is one relay, `place.rs` a connection's place on it, `standing.rs` its breaker. What
//! is in memory here is this process's own: its places, its idle sessions, the faults it saw. What
//! all processes share is read again whenever somebody says that it changed, and now and then anyway.

mod entry;
mod place;
mod standing;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    breaker::{Admission, Breaker},
    eligible::{self, Candidate},
    pool::Pool,
    probe::Trials,
    slots, store,
};
use crate::{
    address::{EmailAddress, Mailbox},
    app::App,
    error::Result,
    queue::Lane,
    sending::{
        limits::{Bucket, Purse},
        pauses::{Pauses, Scope},
    },
};

pub use entry::Relay;
pub use place::{Place, Taking};
pub use standing::{Live, Standing};

/// How often everything is read again though nobody said that it changed.
const FRESH: Duration = Duration::from_secs(5);
/// How often idle sessions are looked through, and what was not spent is given back.
const TIDY: Duration = Duration::from_secs(1);
/// Work that ends must not wait for good-byes.
const CLOSING: Duration = Duration::from_secs(2);
/// A lane that nobody can serve still gets a place now and then: its messages must be told so,
/// and expire.
const UNSERVED: usize = 2;

/// See the module.
pub struct Book {
    app: App,
    pub pauses: Pauses,
    pub purse: Purse,
    relays: RwLock<Arc<Vec<Arc<Relay>>>>,
    state: Mutex<HashMap<Uuid, State>>,
    /// How many places each lane holds: what it runs beyond that will take one yet.
    held: Mutex<HashMap<String, usize>>,
    pool: Pool,
    pub trials: Trials,
    /// Among how many processes connections are divided, and which of them this one is.
    division: Mutex<(usize, usize)>,
    changed: Notify,
    /// Held by who reads: what was read first must not be kept last.
    reading: tokio::sync::Mutex<()>,
    sandbox_port: AtomicU16,
    turn: AtomicUsize,
    begun: Instant,
}

#[derive(Default)]
struct State {
    taken: usize,
    breaker: Breaker,
    /// What was decided, and could not be written yet.
    unwritten: Option<standing::Decision>,
    seen: Option<store::breaker::Row>,
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
            pauses: Pauses::default(),
            purse: Purse::new(app.workers_db.clone()),
            app,
            relays: RwLock::default(),
            state: Mutex::default(),
            held: Mutex::default(),
            pool: Pool::default(),
            trials: Trials::default(),
            division: Mutex::new((1, 0)),
            changed: Notify::new(),
            reading: tokio::sync::Mutex::default(),
            sandbox_port: AtomicU16::new(0),
            turn: AtomicUsize::new(0),
            begun: Instant::now(),
        })
    }

    pub fn app(&self) -> &App {
        &self.app
    }

    /// A relay as it would be used, active or not.
    pub(super) fn as_relay(&self, row: store::Row) -> Relay {
        self.relay(row, self.sandbox_port.load(Ordering::Relaxed))
    }

    /// Where this process's sandbox listens.
    pub fn set_sandbox_port(&self, port: u16) {
        self.sandbox_port.store(port, Ordering::Relaxed);
        self.look_again();
    }

    /// Somebody changed a relay, a pause or a limit; or a process came or went.
    pub fn look_again(&self) {
        self.changed.notify_one();
    }

    /// Reads everything; if that fails, what is known stays in use until the next time. Answers
    /// whether pauses or limits are others now.
    pub async fn refresh(&self) -> bool {
        self.write_what_was_decided().await;
        let read = self.read().await;
        // What rested or was paused may be used now.
        self.app.queue.bell.ring_here();
        read.unwrap_or_else(|error| {
            tracing::warn!(%error, "the relays could not be read; those known stay in use");
            false
        })
    }

    /// Comes back when something was changed, or may have been.
    pub async fn is_stale(&self) {
        _ = tokio::time::timeout(FRESH, self.changed.notified()).await;
    }

    /// Ends sessions that were idle too long, and gives back what was not spent, until told to stop.
    pub async fn keep_tidy(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TIDY) => (),
            }
            for session in self.pool.outworn(|relay| self.room(relay)) {
                session.quit().await;
            }
            if let Err(error) = self.purse.flush(false).await {
                tracing::warn!(%error, "what is left of the limits could not be given back");
            }
        }
    }

    /// Says good-bye to the relays, and gives back what was not spent. Nothing is sent after it.
    pub async fn close(&self) {
        let closing = async {
            for session in self.pool.outworn(|_| None) {
                session.quit().await;
            }
            _ = self.purse.flush(true).await;
        };
        // What stays undone is undone by time.
        _ = tokio::time::timeout(CLOSING, closing).await;
    }

    /// Reads everything. Answers whether pauses or limits are others now.
    pub async fn read(&self) -> Result<bool> {
        let (db, lease) = (&self.app.workers_db, self.app.config.queue.lease);
        let _reading = self.reading.lock().await;
        let rows = store::all(db).await?;
        let port = self.sandbox_port.load(Ordering::Relaxed);
        let relays: Vec<Arc<Relay>> = rows
            .into_iter()
            .filter(|row| row.active && (row.kind != "sandbox" || port != 0))
            .map(|row| Arc::new(self.relay(row, port)))
            .collect();
        *self.relays.write().expect("no writer panics") = Arc::new(relays);
        self.see(store::breaker::all(db, lease).await?);
        let living = store::processes::living(db, lease).await?;
        let me = self.app.queue.process_id;
        // Before its first heartbeat this process counts itself, as the youngest.
        *self.division.lock().expect("no holder panics") =
            match living.iter().position(|it| *it == me) {
                Some(at) => (living.len(), at),
                None => (living.len() + 1, 0),
            };
        let pauses = self.pauses.read(db).await?;
        Ok(self.purse.read().await? || pauses)
    }

    /// The relays in use.
    pub fn relays(&self) -> Arc<Vec<Arc<Relay>>> {
        self.all()
    }

    fn all(&self) -> Arc<Vec<Arc<Relay>>> {
        self.relays.read().expect("no writer panics").clone()
    }

    /// This process's part of a relay's connections.
    fn places(&self, relay: &Relay) -> usize {
        let (among, at) = *self.division.lock().expect("no holder panics");
        relay.max_connections / among + usize::from(at < relay.max_connections % among)
    }

    /// For how many idle sessions a relay has room, and in which version it is known.
    fn room(&self, id: Uuid) -> Option<(chrono::DateTime<chrono::Utc>, usize)> {
        let relays = self.all();
        let relay = relays.iter().find(|it| it.id == id)?;
        let places = self.places(relay);
        let state = self.state.lock().expect("no holder panics");
        let taken = state.get(&id).map_or(0, |it| it.taken);
        Some((relay.version, places.saturating_sub(taken)))
    }

    /// The relays that may carry this sender's mail, the first to be asked first. Equals are shared
    /// out by `rotation`: a message that gives the same each time comes back to the same relay.
    pub fn eligible(&self, sender: &EmailAddress, rotation: usize) -> Vec<Arc<Relay>> {
        let relays = self.all();
        let candidates: Vec<Candidate> = relays.iter().map(|it| it.candidate.clone()).collect();
        eligible::eligible(&candidates, sender.domain().as_str(), &sender.lookup_key(), rotation)
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

    /// How many more messages each lane may begin now. A lane is a sender's domain.
    pub fn capacity(&self, lanes: &[Lane]) -> Vec<usize> {
        let relays = self.all();
        let candidates: Vec<Candidate> = relays.iter().map(|it| it.candidate.clone()).collect();
        let free: Vec<usize> = relays.iter().map(|relay| self.free(relay)).collect();
        let served: Vec<Vec<usize>> =
            lanes.iter().map(|lane| eligible::lane_relays(&candidates, &lane.name)).collect();
        let wants: Vec<slots::Lane<'_>> = lanes
            .iter()
            .zip(&served)
            .map(|(lane, relays)| slots::Lane {
                relays,
                in_use: lane.running,
                pending: lane.running.saturating_sub(self.held_by(&lane.name)),
                wants: lane.due && !self.pauses.holds_sender(&lane.name),
            })
            .collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut shares = slots::share(&wants, &free, usize::MAX, turn);
        for ((share, lane), relays) in shares.iter_mut().zip(lanes).zip(&served) {
            if relays.is_empty() && lane.due && !self.pauses.holds_sender(&lane.name) {
                *share = UNSERVED.saturating_sub(lane.running);
            }
        }
        shares
    }

    fn held_by(&self, lane: &str) -> usize {
        self.held.lock().expect("no holder panics").get(lane).copied().unwrap_or(0)
    }

    /// How many more sessions a relay may begin now.
    fn free(&self, relay: &Relay) -> usize {
        let paused = self.pauses.holds(Scope::Relay, &relay.id.to_string());
        let used_up =
            relay.max_per_minute.is_some() && self.purse.is_empty(&Bucket::of_relay(relay.id));
        if paused || used_up {
            return 0;
        }
        let places = self.places(relay);
        let state = self.state.lock().expect("no holder panics");
        let Some(it) = state.get(&relay.id) else { return places };
        match it.breaker.admits(self.begun.elapsed()) {
            Admission::Slot(_) => places.saturating_sub(it.taken),
            Admission::ProbeIsDue(_) => usize::from(it.taken < places),
            Admission::No => 0,
        }
    }
}
