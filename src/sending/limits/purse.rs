//! What this process may spend of the limits: taken from the database in blocks of about a
//! second, spent here, and what is left over given back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, RwLock},
    time::{Duration, Instant},
};

use sqlx::PgPool;

use super::{Bucket, Limit, Scope, store};
use crate::error::Result;

/// What was taken and not spent is given back after this time.
const KEPT: Duration = Duration::from_secs(1);
/// That a limit is used up is believed for so long: another process may give some back, and the
/// database's clock is the one that counts.
const BELIEVED: Duration = Duration::from_secs(1);
/// Who is turned away looks again after this time at the latest: a limit may have been changed.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// A limit to be kept: a bucket, and how much it holds.
pub type Kept = (Bucket, i32);

/// See the module.
pub struct Purse {
    db: PgPool,
    limits: RwLock<Arc<Limits>>,
    held: Mutex<HashMap<Bucket, Held>>,
}

type Limits = HashMap<(Scope, String), Vec<Limit>>;

#[derive(Debug, Clone, Copy)]
struct Held {
    tokens: i32,
    since: Instant,
    /// Nothing is left until then; and until when that is believed.
    empty: Option<(Instant, Instant)>,
    /// How many were turned away since something was left: they need not all come back at once.
    turned_away: u32,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spending {
    Spent,
    /// The limit that is used up, and how long to wait.
    Wait(Kept, Duration),
}

impl Purse {
    pub fn new(db: PgPool) -> Self {
        Self { db, limits: RwLock::default(), held: Mutex::default() }
    }

    /// Reads the limits. Answers whether they are others now.
    pub async fn read(&self) -> Result<bool> {
        let mut limits = Limits::new();
        for limit in store::all(&self.db).await? {
            limits.entry((limit.scope, limit.value.clone())).or_default().push(limit);
        }
        let before = std::mem::replace(
            &mut *self.limits.write().expect("no writer panics"),
            Arc::new(limits.clone()),
        );
        let changed = *before != limits;
        if changed {
            // What was believed of them is not true of the new ones.
            self.held.lock().expect("no holder panics").values_mut().for_each(|it| it.empty = None);
        }
        Ok(changed)
    }

    /// The limits that hold for this key or domain.
    pub fn of(&self, scope: Scope, value: &str) -> Vec<Limit> {
        let limits = self.limits.read().expect("no writer panics").clone();
        if limits.is_empty() {
            return Vec::new();
        }
        limits.get(&(scope, value.to_owned())).cloned().unwrap_or_default()
    }

    /// Spends one of each, or of none.
    pub async fn spend(&self, wanted: &[Kept]) -> Result<Spending> {
        for (at, kept) in wanted.iter().enumerate() {
            let spending = self.spend_one(kept).await;
            if !matches!(spending, Ok(Spending::Spent)) {
                self.give_back(wanted[..at].iter().map(|(bucket, _)| bucket), Instant::now());
                return spending;
            }
        }
        Ok(Spending::Spent)
    }

    async fn spend_one(&self, kept: &Kept) -> Result<Spending> {
        if let Some(spending) = self.spend_held(kept) {
            return Ok(spending);
        }
        let (bucket, most) = kept;
        let block = (f64::from(*most) / bucket.per.seconds() as f64).ceil() as i32;
        let left = store::spend(&self.db, bucket, *most, block.max(1)).await?;
        let mut held = self.held.lock().expect("no holder panics");
        let it = held.entry(bucket.clone()).or_insert_with(Held::nothing);
        it.tokens += left.taken;
        it.since = Instant::now();
        let now = Instant::now();
        let free_in = Duration::from_secs_f64(left.free_in.max(0.05));
        it.empty = (left.taken == 0).then(|| (now + free_in, now + free_in.min(BELIEVED)));
        drop(held);
        Ok(self.spend_held(kept).unwrap_or_else(|| Spending::Wait(kept.clone(), KEPT)))
    }

    /// Spends of what is held, or says how long nothing will be.
    fn spend_held(&self, kept: &Kept) -> Option<Spending> {
        let (bucket, most) = kept;
        let mut held = self.held.lock().expect("no holder panics");
        let it = held.get_mut(bucket)?;
        if it.tokens > 0 {
            *it = Held { tokens: it.tokens - 1, turned_away: 0, ..*it };
            return Some(Spending::Spent);
        }
        let (until, believed) = it.empty?;
        believed.checked_duration_since(Instant::now())?;
        let left = until.saturating_duration_since(Instant::now());
        // The first come back when something is left, those behind them a whole time later, …
        let times = it.turned_away / u32::try_from(*most).unwrap_or(1).max(1);
        it.turned_away = it.turned_away.saturating_add(1);
        let whole = Duration::from_secs(bucket.per.seconds().unsigned_abs());
        let wait = left.saturating_add(whole.saturating_mul(times)).min(LONGEST_WAIT);
        Some(Spending::Wait(kept.clone(), wait))
    }

    /// Gives back one of each, taken at that time: what it was for did not come to be. Where the time of
    /// the limit has passed since, it is forgotten already, and would be taken off somebody else's.
    pub fn give_back<'a>(&self, buckets: impl Iterator<Item = &'a Bucket>, taken: Instant) {
        let mut held = self.held.lock().expect("no holder panics");
        let age = taken.elapsed();
        for bucket in buckets.filter(|it| age.as_secs() < it.per.seconds().unsigned_abs()) {
            let it = held.entry(bucket.clone()).or_insert_with(Held::nothing);
            it.tokens += 1;
            it.since = Instant::now();
        }
    }

    /// Whether nothing is left of this limit, as far as this process knows.
    pub fn is_empty(&self, bucket: &Bucket) -> bool {
        let held = self.held.lock().expect("no holder panics");
        held.get(bucket).is_some_and(|it| it.tokens <= 0 && it.is_empty())
    }

    /// Returns to the database what is held and was not spent for a while; all of it at the end.
    pub async fn flush(&self, all: bool) -> Result<()> {
        let unspent: Vec<(Bucket, i32)> = {
            let mut held = self.held.lock().expect("no holder panics");
            let old = |it: &Held| all || it.since.elapsed() >= KEPT;
            let unspent = held
                .iter()
                .filter(|(_, it)| it.tokens > 0 && old(it))
                .map(|(bucket, it)| (bucket.clone(), it.tokens));
            let unspent = unspent.collect();
            // What is neither held nor known to be empty need not be remembered.
            held.retain(|_, it| {
                if it.tokens > 0 && old(it) {
                    it.tokens = 0;
                }
                it.tokens > 0 || it.empty.is_some_and(|(until, _)| until > Instant::now())
            });
            unspent
        };
        for (bucket, tokens) in unspent {
            store::spend(&self.db, &bucket, 0, -tokens).await?;
        }
        Ok(())
    }
}

impl Held {
    fn nothing() -> Self {
        Self { tokens: 0, since: Instant::now(), empty: None, turned_away: 0 }
    }

    fn is_empty(&self) -> bool {
        self.empty.is_some_and(|(_, believed)| believed > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Per, *};

    #[tokio::test]
    async fn what_was_taken_longer_ago_than_the_limit_counts_is_not_given_back() {
        let purse = Purse::new(PgPool::connect_lazy("postgres://nobody@127.0.0.1:1/none").unwrap());
        let bucket = |per| Bucket { scope: Scope::Key, value: "one".to_owned(), per };
        let all = [bucket(Per::Minute), bucket(Per::Hour)];
        let Some(taken) = Instant::now().checked_sub(Duration::from_secs(61)) else { return };
        purse.give_back(all.iter(), taken);
        assert_eq!(purse.spend_held(&(all[0].clone(), 10)), None);
        assert_eq!(purse.spend_held(&(all[1].clone(), 10)), Some(Spending::Spent));
    }
}
