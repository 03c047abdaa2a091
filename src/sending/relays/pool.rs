//! Sessions that stay open between transactions, so that the next one needs no handshake.
//!
//! A session is kept only when both sides agree where they stand, and is dropped at the first
//! doubt: RSET unanswered, something said unasked, too old, used too often, its relay changed.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::outside::smtp::Session;

/// A session ends after so many messages: servers limit them too …
const MOST_MESSAGES: u32 = 100;
/// … and at this age, so that a changed name is looked up again …
const LONGEST_LIFE: Duration = Duration::from_secs(5 * 60);
/// … and when nothing was sent for so long: below the patience of common servers.
const LONGEST_IDLE: Duration = Duration::from_secs(20);
/// A server that lives answers RSET at once.
const RESET: Duration = Duration::from_secs(5);

/// A session, and what was done with it.
pub struct Kept {
    pub session: Session,
    born: Instant,
    idle_since: Instant,
    messages: u32,
    /// The relay as it was when the session was opened.
    version: DateTime<Utc>,
}

impl Kept {
    pub fn new(session: Session, version: DateTime<Utc>) -> Self {
        let now = Instant::now();
        Self { session, born: now, idle_since: now, messages: 0, version }
    }

    fn is_good(&self, version: DateTime<Utc>) -> bool {
        self.version == version
            && self.messages < MOST_MESSAGES
            && self.born.elapsed() < LONGEST_LIFE
            && self.idle_since.elapsed() < LONGEST_IDLE
    }
}

/// The idle sessions, by relay; the one used last is used first.
#[derive(Default)]
pub struct Pool(Mutex<HashMap<Uuid, Vec<Kept>>>);

impl Pool {
    /// A session that is clean and answers, if one is kept.
    pub async fn take(&self, relay: Uuid, version: DateTime<Utc>) -> Option<Kept> {
        loop {
            let mut kept = self.pop(relay)?;
            if !kept.is_good(version) || !kept.session.is_idle() {
                continue;
            }
            if let Ok(Ok(())) = tokio::time::timeout(RESET, kept.session.reset()).await {
                return Some(kept);
            }
        }
    }

    fn pop(&self, relay: Uuid) -> Option<Kept> {
        self.0.lock().expect("no holder panics").get_mut(&relay)?.pop()
    }

    /// Keeps a session after a transaction, if both sides agree that it has ended.
    pub fn put(&self, relay: Uuid, mut kept: Kept) {
        if kept.session.is_idle() {
            kept.messages += 1;
            kept.idle_since = Instant::now();
            self.0.lock().expect("no holder panics").entry(relay).or_default().push(kept);
        }
    }

    pub fn idle(&self, relay: Uuid) -> usize {
        self.0.lock().expect("no holder panics").get(&relay).map_or(0, Vec::len)
    }

    /// Takes out what must not be kept any longer, the oldest first. `room` says for each relay as
    /// which version it is known, and for how many idle sessions it has room.
    pub fn outworn(&self, room: impl Fn(Uuid) -> Option<(DateTime<Utc>, usize)>) -> Vec<Session> {
        let mut idle = self.0.lock().expect("no holder panics");
        let mut out = Vec::new();
        for (relay, sessions) in idle.iter_mut() {
            let room = room(*relay);
            let (good, bad): (Vec<Kept>, Vec<Kept>) = std::mem::take(sessions)
                .into_iter()
                .partition(|it| room.is_some_and(|(version, _)| it.is_good(version)));
            let most = room.map_or(0, |(_, most)| most);
            let surplus = good.len().saturating_sub(most);
            out.extend(bad);
            for (at, kept) in good.into_iter().enumerate() {
                if at < surplus { out.push(kept) } else { sessions.push(kept) }
            }
        }
        idle.retain(|_, sessions| !sessions.is_empty());
        out.into_iter().map(|it| it.session).collect()
    }
}
