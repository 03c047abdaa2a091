//! How much is forgotten at a time, and how long the database rests in between.

use std::time::Duration;

/// What a batch should take: short enough that nobody notices who waits behind it.
const WANTED: Duration = Duration::from_millis(100);
const LEAST: i64 = 20;
const MOST: i64 = 2_000;
const LONGEST_REST: Duration = Duration::from_secs(2);
/// A row that takes so much longer than the best ones tells that others want the database.
const BUSY: f64 = 3.0;

#[derive(Debug)]
pub(super) struct Pace {
    size: i64,
    /// Seconds a row, of the best batch not long ago.
    best: Option<f64>,
}

impl Pace {
    pub fn new() -> Self {
        Self { size: 200, best: None }
    }

    /// How many rows the next batch may hold.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Learns from a batch, and answers how long to rest: as long as it took, so that at least half
    /// of the time is others'; when the database is busy, much longer.
    pub fn after(&mut self, rows: u64, took: Duration) -> Duration {
        if took > WANTED * 2 {
            self.size = (self.size / 2).max(LEAST);
        } else if took < WANTED / 2 {
            self.size = (self.size * 2).min(MOST);
        }
        #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
        let each = took.as_secs_f64() / rows.max(1) as f64;
        let best = self.best.map_or(each, |best| best.min(each));
        let is_busy = each > best * BUSY;
        // The best is forgotten slowly: what is slow for long is how it is now.
        self.best = Some(best * 1.02);
        let rest = if is_busy { took * 5 } else { took };
        rest.clamp(Duration::from_millis(5), LONGEST_REST)
    }

    /// A batch could not be done for the moment: less, and later.
    pub fn failed(&mut self) -> Duration {
        self.size = (self.size / 4).max(LEAST);
        LONGEST_REST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn batches_grow_while_they_are_quick_and_shrink_when_they_are_slow() {
        let mut pace = Pace::new();
        for _ in 0..20 {
            pace.after(1000, MS * 10);
        }
        assert_eq!(pace.size(), MOST);
        for _ in 0..20 {
            pace.after(1000, MS * 900);
        }
        assert_eq!(pace.size(), LEAST);
        assert_eq!(pace.after(1, MS * 60_000), LONGEST_REST);
    }

    #[test]
    fn half_of_the_time_is_for_others_and_more_when_they_want_it() {
        let mut pace = Pace::new();
        assert_eq!(pace.after(1000, MS * 100), MS * 100);
        assert_eq!(pace.after(1000, MS * 150), MS * 150);
        assert_eq!(pace.after(1000, MS * 350), MS * 1750, "three times slower: others want it");
        // What stays slow is no longer busy, but how this machine is.
        let rests: Vec<_> = (0..100).map(|_| pace.after(1000, MS * 350)).collect();
        assert_eq!(*rests.last().unwrap(), MS * 350);
    }
}
