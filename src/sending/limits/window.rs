//! What was spent of one limit lately. A plain sliding window: no clock, no database.

/// A limit's time is told in so many slots …
const PARTS: i64 = 60;
/// … and one slot more is remembered: what was spent at the end of a slot is forgotten no earlier
/// than a whole time later, so that no time of that length, wherever it begins, holds more than
/// the limit.
const SLOTS: usize = 61;

/// Counts by slot; the newest is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The number of the newest slot: seconds since 1970, divided by the width of a slot.
    pub head: i64,
    pub counts: Vec<i32>,
}

/// The width of a slot, in seconds, of a limit over so many seconds.
pub fn width(seconds: i64) -> f64 {
    seconds as f64 / PARTS as f64
}

impl Window {
    /// Nothing spent. `now` is in seconds since 1970.
    pub fn empty(now: f64, width: f64) -> Self {
        Self { head: slot(now, width), counts: vec![0; SLOTS] }
    }

    /// As it was kept; a shape that is not ours counts as full, so that nothing is overspent.
    pub fn kept(head: i64, counts: Vec<i32>) -> Self {
        let counts = if counts.len() == SLOTS { counts } else { vec![i32::MAX / 64; SLOTS] };
        Self { head, counts }
    }

    /// Moves on to the present; a clock that went back changes nothing.
    pub fn advance(&mut self, now: f64, width: f64) {
        let by = (slot(now, width) - self.head).max(0);
        let gone = usize::try_from(by).unwrap_or(SLOTS).min(SLOTS);
        self.counts.drain(..gone);
        self.counts.resize(SLOTS, 0);
        self.head += by;
    }

    pub fn spent(&self) -> i64 {
        self.counts.iter().map(|it| i64::from(*it)).sum()
    }

    pub fn left(&self, most: i32) -> i32 {
        i32::try_from((i64::from(most) - self.spent()).max(0)).unwrap_or(i32::MAX)
    }

    /// Takes as many of `wanted` as are left.
    pub fn take(&mut self, most: i32, wanted: i32) -> i32 {
        let taken = wanted.min(self.left(most));
        self.counts[SLOTS - 1] += taken;
        taken
    }

    /// Gives back what was taken and not spent, the newest first.
    pub fn give_back(&mut self, mut unspent: i32) {
        for count in self.counts.iter_mut().rev() {
            let back = unspent.min(*count);
            *count -= back;
            unspent -= back;
        }
    }

    /// Seconds until something is left again, for a window that has advanced to `now`.
    pub fn free_in(&self, most: i32, now: f64, width: f64) -> f64 {
        let mut over = self.spent() - i64::from(most) + 1;
        for (at, count) in self.counts.iter().enumerate() {
            if over <= 0 {
                let gone = self.head - SLOTS as i64 + at as i64;
                return ((gone + SLOTS as i64) as f64 * width - now).max(0.0);
            }
            over -= i64::from(*count);
        }
        ((self.head + SLOTS as i64) as f64 * width - now).max(0.0)
    }
}

fn slot(now: f64, width: f64) -> i64 {
    (now / width).floor() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_an_hour_are_ten_and_the_eleventh_goes_an_hour_later() {
        let width = width(3600);
        let mut window = Window::empty(1_000_000.0, width);
        assert_eq!(window.take(10, 15), 10);
        assert_eq!(window.take(10, 1), 0);
        let wait = window.free_in(10, 1_000_000.0, width);
        assert!((3600.0..=3660.0).contains(&wait), "{wait}");
        window.advance(1_000_000.0 + wait - 1.0, width);
        assert_eq!(window.take(10, 1), 0);
        window.advance(1_000_000.0 + wait, width);
        assert_eq!(window.take(10, 1), 1);
    }

    #[test]
    fn what_was_not_spent_is_there_again() {
        let mut window = Window::empty(0.0, 1.0);
        assert_eq!(window.take(10, 10), 10);
        window.advance(5.0, 1.0);
        window.give_back(4);
        assert_eq!(window.left(10), 4);
        window.give_back(100);
        assert_eq!(window.left(10), 10);
    }

    #[test]
    fn a_lowered_limit_waits_until_enough_is_forgotten() {
        let mut window = Window::empty(0.0, 1.0);
        window.take(10, 5);
        window.advance(10.0, 1.0);
        window.take(10, 5);
        let wait = window.free_in(6, 10.0, 1.0);
        window.advance(10.0 + wait, 1.0);
        assert_eq!(window.left(6), 1);
    }

    proptest! {
        /// No 60 slots of time, wherever they begin, hold more than the limit.
        #[test]
        fn no_stretch_of_time_holds_more(steps in prop::collection::vec((0.0f64..20.0, 1i32..9), 1..200)) {
            let (mut now, mut window) = (0.0, Window::empty(0.0, 1.0));
            let mut taken: Vec<(f64, i32)> = Vec::new();
            for (pause, wanted) in steps {
                now += pause;
                window.advance(now, 1.0);
                taken.push((now, window.take(7, wanted)));
                let lately: i32 =
                    taken.iter().filter(|(at, _)| *at > now - 60.0).map(|(_, n)| n).sum();
                prop_assert!(lately <= 7);
                if window.left(7) == 0 {
                    let mut later = window.clone();
                    later.advance(now + window.free_in(7, now, 1.0) + 1e-6, 1.0);
                    prop_assert!(later.left(7) > 0);
                }
            }
        }
    }
}
