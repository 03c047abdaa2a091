//! `?wait`: an answer that waits for the outcome.
//!
//! The process that writes an outcome wakes those who wait for it here; as another process may do
//! the work, each looks by itself too. Nothing of this is in the way of the work: a client that
//! leaves changes nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{store, view::Job};
use crate::{
    error::{Error, Result},
    sending::Sending,
};

const USUAL: Duration = Duration::from_secs(30);
const LONGEST: u64 = 60;
/// How often is looked without a ring: at first, and in the end.
const FIRST: Duration = Duration::from_millis(50);
const SLOWEST: Duration = Duration::from_secs(1);

/// How long `?wait` asks for: nothing, `1` and `true` are 30 seconds, a number is so many seconds.
/// Whatever else it says, the answer does not wait.
pub fn asked(wait: Option<&str>) -> Result<Option<Duration>> {
    let Some(text) = wait else { return Ok(None) };
    match (text, text.parse::<i128>()) {
        ("" | "1" | "true", _) => Ok(Some(USUAL)),
        (_, Ok(0) | Err(_)) => Ok(None),
        (_, Ok(seconds)) => match u64::try_from(seconds) {
            Ok(seconds @ 1..=LONGEST) => Ok(Some(Duration::from_secs(seconds))),
            _ => Err(Error::invalid("wait", format!("must be at most {LONGEST} seconds"))),
        },
    }
}

/// How the wait for a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every recipient was accepted.
    Accepted,
    /// It has settled, and nobody was accepted.
    Dead,
    /// Neither: it still waits, or some were accepted and some not.
    Open,
}

impl Ended {
    pub fn of(job: &Job) -> Self {
        match job.status {
            "dead" => Self::Dead,
            "done" if job.accepted == job.recipient_count => Self::Accepted,
            _ => Self::Open,
        }
    }
}

/// Who waits for which message, in this process.
#[derive(Debug, Default)]
pub struct Outcomes {
    waiting: Mutex<HashMap<Uuid, Weak<Notify>>>,
    closed: CancellationToken,
}

impl Outcomes {
    /// Something became of these messages; it is committed.
    pub fn tell(&self, ids: impl IntoIterator<Item = Uuid>) {
        let waiting = self.waiting.lock().expect("no holder panics");
        if !waiting.is_empty() {
            let bells = ids.into_iter().filter_map(|id| waiting.get(&id)?.upgrade());
            bells.for_each(|bell| bell.notify_waiters());
        }
    }

    /// Nobody waits any longer: this process stops.
    pub fn close(&self) {
        self.closed.cancel();
    }

    fn bell(&self, id: Uuid) -> Arc<Notify> {
        let mut waiting = self.waiting.lock().expect("no holder panics");
        waiting.get(&id).and_then(Weak::upgrade).unwrap_or_else(|| {
            waiting.retain(|_, bell| bell.strong_count() > 0);
            let bell = Arc::new(Notify::new());
            waiting.insert(id, Arc::downgrade(&bell));
            bell
        })
    }
}

/// Waits until the message has settled, or waits for a later time itself.
pub async fn wait(sending: &Sending, id: Uuid, patience: Duration) -> Result<()> {
    let outcomes = &sending.work.outcomes;
    let (deadline, bell) = (Instant::now() + patience, outcomes.bell(id));
    let mut pause = FIRST;
    loop {
        let mut rung = std::pin::pin!(bell.notified());
        // Before the look, so that nothing falls between the two.
        rung.as_mut().enable();
        if store::read::is_at_rest(&sending.app.db, id).await? || Instant::now() >= deadline {
            return Ok(());
        }
        tokio::select! {
            () = rung => (),
            () = outcomes.closed.cancelled() => return Ok(()),
            () = tokio::time::sleep_until(deadline.min(Instant::now() + pause)) => (),
        }
        pause = (pause * 2).min(SLOWEST);
    }
}
