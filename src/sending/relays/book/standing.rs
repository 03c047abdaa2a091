//! How the breakers stand: what this process saw and decided, and what all of them share.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Book, Relay};
use crate::{
    error::Result,
    events::{self, Event},
    queue::Channel,
    sending::{
        pauses::Scope,
        relays::{
            breaker::{self, Evidence, PROBE_PATIENCE, Pass, Shared, Wish},
            store::{
                self,
                breaker::{Row, Words},
            },
        },
    },
};

/// A decision is in nobody's way for longer than this; what is not written then is written later.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was decided over a generation.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    relay: Uuid,
    name: String,
    generation: i64,
    wish: Wish,
    words: Words,
}

/// A relay's breaker, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = BreakerState)]
pub enum Standing {
    Closed,
    /// It rests after faults.
    Open,
    /// One message finds out whether it is back.
    HalfOpen,
}

/// A relay as it is now. Connections are those of the process that answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    pub breaker: Standing,
    /// Seconds until it is asked again; null while it is in use.
    pub rests_for: Option<u64>,
    /// Seconds since it began to fail; null while it is in use.
    pub degraded_for: Option<u64>,
    /// What it failed with.
    pub reason: Option<String>,
    pub text: Option<String>,
    /// An operator has paused it.
    pub paused: bool,
    pub in_use: usize,
    /// Open, and waiting for the next message.
    pub idle: usize,
    /// This process's part of `maxConnections`.
    pub places: usize,
}

impl Book {
    /// What all processes share of the breakers.
    pub(super) fn see(&self, rows: Vec<Row>) {
        let now = self.begun.elapsed();
        let mut state = self.state.lock().expect("no holder panics");
        for row in rows {
            let it = state.entry(row.relay_id).or_default();
            it.breaker.see(shared(&row, now));
            it.seen = Some(row);
        }
    }

    /// The probe was handed to this process, as this generation.
    pub(super) fn is_probed(&self, relay: Uuid, generation: i64) {
        let until = self.begun.elapsed() + PROBE_PATIENCE;
        let mut state = self.state.lock().expect("no holder panics");
        let it = state.entry(relay).or_default();
        let rest = it.breaker.shared().rest;
        let standing = breaker::Standing::HalfOpen { until };
        it.breaker.see(Shared { generation, standing, rest });
    }

    /// What a session told about its relay, and what follows.
    pub(super) async fn report(&self, relay: &Relay, pass: Pass, evidence: Evidence, words: Words) {
        let wish = {
            let mut state = self.state.lock().expect("no holder panics");
            let it = state.entry(relay.id).or_default();
            it.breaker.report(pass, self.begun.elapsed(), evidence)
        };
        let Some(wish) = wish else { return };
        match wish {
            Wish::Open { rest } => {
                tracing::warn!(relay.id = %relay.id, seconds = rest.as_secs(), "the relay is given a rest");
            }
            Wish::Close => tracing::info!(relay.id = %relay.id, "the relay is back"),
            Wish::Prolong { .. } | Wish::Free { .. } => (),
        }
        let (id, name) = (relay.id, relay.name.clone());
        let words = if wish == Wish::Close { Words::default() } else { words };
        self.write(Decision { relay: id, name, generation: pass.generation, wish, words }).await;
    }

    /// Writes a decision, once for all processes, or keeps it for later.
    async fn write(&self, decision: Decision) {
        let written = tokio::time::timeout(PATIENCE, self.try_write(&decision)).await;
        let failed = match written {
            Ok(Ok(true)) => return,
            // Another process has decided: what it made of it is what counts.
            Ok(Ok(false)) => return self.look_again(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        tracing::warn!(relay.id = %decision.relay, error = failed, "a breaker's change waits for the database");
        let mut state = self.state.lock().expect("no holder panics");
        let relay = decision.relay;
        state.entry(relay).or_default().unwritten = Some(decision);
    }

    async fn try_write(&self, decision: &Decision) -> Result<bool> {
        let Decision { relay, name, generation, wish, words } = decision;
        let mut tx = self.app.workers_db.begin().await?;
        let Some(open_for) =
            store::breaker::write(&mut tx, *relay, *generation, *wish, words).await?
        else {
            return Ok(false);
        };
        let told = match wish {
            Wish::Open { rest } => Some((
                "relay.degraded",
                serde_json::json!({
                    "name": name, "reason": words.reason, "text": words.text, "restSeconds": rest.as_secs(),
                }),
            )),
            Wish::Close => {
                let seconds = open_for.round() as u64;
                Some((
                    "relay.recovered",
                    serde_json::json!({ "name": name, "degradedSeconds": seconds }),
                ))
            }
            Wish::Prolong { .. } | Wish::Free { .. } => None,
        };
        if let Some((kind, data)) = told {
            let event = Event { kind, subject: "relay", subject_id: *relay, data };
            events::emit(&mut tx, &[event]).await?;
        }
        store::notify(&mut tx, Channel::Relays).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Writes what could not be written when it was decided.
    pub(super) async fn write_what_was_decided(&self) {
        let unwritten: Vec<Decision> = {
            let mut state = self.state.lock().expect("no holder panics");
            state.values_mut().filter_map(|it| it.unwritten.take()).collect()
        };
        for decision in unwritten {
            self.write(decision).await;
        }
    }

    /// The relays in use, by id and name, each as it is now.
    pub fn living(&self) -> Vec<(Uuid, String, Live)> {
        self.all().iter().map(|it| (it.id, it.name.clone(), self.live(it.id))).collect()
    }

    /// How a relay is now.
    pub fn live(&self, id: Uuid) -> Live {
        let paused = self.pauses.holds(Scope::Relay, &id.to_string());
        let places = self.all().iter().find(|it| it.id == id).map_or(0, |it| self.places(it));
        let now = self.begun.elapsed();
        let state = self.state.lock().expect("no holder panics");
        let it = state.get(&id);
        let standing = it.map_or(Shared::NEW, |it| it.breaker.shared()).standing;
        let (breaker, until) = match standing {
            breaker::Standing::Closed => (Standing::Closed, None),
            breaker::Standing::Open { until } => (Standing::Open, Some(until)),
            breaker::Standing::HalfOpen { until } => (Standing::HalfOpen, Some(until)),
        };
        let seen = it.and_then(|it| it.seen.as_ref()).filter(|_| until.is_some());
        Live {
            breaker,
            rests_for: until.map(|until| until.saturating_sub(now).as_secs()),
            degraded_for: seen.and_then(|it| it.open_for).map(|it| it.max(0.0) as u64),
            reason: seen.and_then(|it| it.reason.clone()),
            text: seen.and_then(|it| it.text.clone()),
            paused,
            in_use: it.map_or(0, |it| it.taken),
            idle: self.pool.idle(id),
            places,
        }
    }
}

fn shared(row: &Row, now: Duration) -> Shared {
    let until = now + Duration::from_secs_f64(row.left.unwrap_or(0.0).max(0.0));
    Shared {
        generation: row.generation,
        standing: match row.state.as_str() {
            "open" => breaker::Standing::Open { until },
            "half_open" => breaker::Standing::HalfOpen { until },
            _ => breaker::Standing::Closed,
        },
        rest: Duration::from_secs_f64(row.rest.max(0.0)),
    }
}
