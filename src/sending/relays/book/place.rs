//! A connection's place on a relay: asked for, used for one transaction, given back.

use std::{sync::Arc, time::Instant};

use super::{Book, Relay};
use crate::{
    outside::smtp::Session,
    sending::{
        limits::{Bucket, Spending},
        pauses::Scope,
        relays::{
            breaker::{Admission, Evidence, Pass, Standing},
            pool::Kept,
            store::{self, breaker::Words},
        },
    },
};

/// What came of asking for a place.
pub enum Taking {
    Place(Place),
    /// All places are taken, the minute's messages are sent, or an operator has paused it.
    Full,
    /// The relay rests after faults.
    Rests,
}

/// A connection's place on a relay; given back when dropped.
pub struct Place {
    book: Arc<Book>,
    pub relay: Arc<Relay>,
    lane: String,
    pass: Option<Pass>,
    /// When one of the minute's messages was taken for it; it is given back unless it is used.
    minute: Option<Instant>,
}

impl Book {
    /// Takes a place on a relay for this lane, if one is free and the relay does not rest.
    pub async fn take(self: &Arc<Self>, relay: &Arc<Relay>, lane: &str) -> Taking {
        if self.pauses.holds(Scope::Relay, &relay.id.to_string()) {
            return Taking::Full;
        }
        let Some(mut place) = self.reserve(relay, lane) else { return Taking::Full };
        let admission = self.admission(relay);
        if admission == Admission::No {
            // While one message finds out, the others need not wait for long.
            return if self.is_being_probed(relay) { Taking::Full } else { Taking::Rests };
        }
        if !place.takes_a_minutes_message().await {
            return Taking::Full;
        }
        place.pass = match admission {
            Admission::Slot(pass) => Some(pass),
            Admission::ProbeIsDue(generation) => self.probe(relay, generation).await,
            Admission::No => None,
        };
        // Where another process has the probe, its outcome is soon known.
        if place.pass.is_some() { Taking::Place(place) } else { Taking::Full }
    }

    fn reserve(self: &Arc<Self>, relay: &Arc<Relay>, lane: &str) -> Option<Place> {
        let places = self.places(relay);
        let mut state = self.state.lock().expect("no holder panics");
        let it = state.entry(relay.id).or_default();
        if it.taken >= places {
            return None;
        }
        it.taken += 1;
        drop(state);
        let lane = lane.to_owned();
        *self.held.lock().expect("no holder panics").entry(lane.clone()).or_default() += 1;
        Some(Place { book: self.clone(), relay: relay.clone(), lane, pass: None, minute: None })
    }

    fn admission(&self, relay: &Relay) -> Admission {
        let mut state = self.state.lock().expect("no holder panics");
        state.entry(relay.id).or_default().breaker.admits(self.begun.elapsed())
    }

    fn is_being_probed(&self, relay: &Relay) -> bool {
        let state = self.state.lock().expect("no holder panics");
        let shared = state.get(&relay.id).map(|it| it.breaker.shared());
        shared.is_some_and(|it| matches!(it.standing, Standing::HalfOpen { .. }))
    }

    /// The probe, if no other process has it.
    async fn probe(&self, relay: &Relay, generation: i64) -> Option<Pass> {
        let (db, queue) = (&self.app.workers_db, &self.app.queue);
        let probe =
            store::breaker::probe(db, relay.id, generation, queue.process_id, queue.lease).await;
        if let Err(error) = &probe {
            tracing::warn!(relay.id = %relay.id, %error, "a probe could not be asked for");
        }
        match probe.ok().flatten() {
            Some(generation) => {
                self.is_probed(relay.id, generation);
                Some(Pass::probe(generation))
            }
            None => {
                self.look_again();
                None
            }
        }
    }
}

impl Place {
    async fn takes_a_minutes_message(&mut self) -> bool {
        let Some(most) = self.relay.max_per_minute else { return true };
        match self.book.purse.spend(&[(Bucket::of_relay(self.relay.id), most)]).await {
            Ok(Spending::Spent) => self.minute = Some(Instant::now()),
            Ok(Spending::Wait(..)) => (),
            Err(error) => tracing::warn!(%error, "the limit of a relay could not be asked for"),
        }
        self.minute.is_some()
    }

    /// A message was sent, or may have been: it counts.
    pub fn counts(&mut self) {
        self.minute = None;
    }

    /// An open session of the relay's, clean for a transaction, if one is kept.
    pub async fn kept_session(&self) -> Option<Kept> {
        self.book.pool.take(self.relay.id, self.relay.version).await
    }

    /// A session that was opened for this place.
    pub fn new_session(&self, session: Session) -> Kept {
        Kept::new(session, self.relay.version)
    }

    /// Keeps a session for the next transaction.
    pub fn keep(&self, session: Kept) {
        self.book.pool.put(self.relay.id, session);
    }

    /// What the session told about the relay.
    pub async fn report(&mut self, evidence: Evidence, words: Words) {
        let Some(pass) = self.pass.take() else { return };
        self.book.report(&self.relay, pass, evidence, words).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(taken) = self.minute {
            self.book.purse.give_back([Bucket::of_relay(self.relay.id)].iter(), taken);
        }
        let mut state = self.book.state.lock().expect("no holder panics");
        let it = state.entry(self.relay.id).or_default();
        it.taken = it.taken.saturating_sub(1);
        drop(state);
        let mut held = self.book.held.lock().expect("no holder panics");
        if let Some(n) = held.get_mut(&self.lane) {
            *n -= 1;
            if *n == 0 {
                held.remove(&self.lane);
            }
        }
    }
}
