//! The retry policy of messages: when again, and how often at most. One pure function.
//!
//! The waits before try 2, 3, 4, …, then the last one for ever:
//!
//! | cause | waits |
//! |---|---|
//! | transient | 2, 5, 10, 20, 40 min, 1 h, 2 h, 4 h |
//! | greylisted | 5, 10, 20, 40 min, 1 h, 2 h, 4 h |
//! | relay | 30 s, 1, 2, 5, 10, 15, 30 min, 1 h |
//! | login | 5, 10, 20, 40 min, 1 h |
//! | connection | 10 s, 30 s, 1, 2, 5, 10, 15, 30 min, 1 h |
//!
//! Jitter only ever adds, up to a fifth: nobody is asked earlier than the table, or the other
//! side's own words, say.

use std::time::Duration;

/// RFC 5321 §4.5.4.1 asks for four to five days before giving up.
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// Why the last try did not settle the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// All eligible relays are at fault: they come back sooner than a recipient's server does.
    Relay,
    /// All eligible relays are at fault, and a refused login is among them. Each try is one more
    /// failed login: six of them make fail2ban shut our address out for a week.
    Login,
    /// A 4xx of the other side.
    Transient,
    /// A 4xx that asks to come back, most often after five minutes (RFC 6647 §3).
    Greylisted,
    /// The connection was lost before the dot.
    Connection,
}

const MIN: u64 = 60;
const HOUR: u64 = 60 * MIN;

const TRANSIENT: &[u64] =
    &[2 * MIN, 5 * MIN, 10 * MIN, 20 * MIN, 40 * MIN, HOUR, 2 * HOUR, 4 * HOUR];
const GREYLISTED: &[u64] = &[5 * MIN, 10 * MIN, 20 * MIN, 40 * MIN, HOUR, 2 * HOUR, 4 * HOUR];
const RELAY: &[u64] = &[30, MIN, 2 * MIN, 5 * MIN, 10 * MIN, 15 * MIN, 30 * MIN, HOUR];
const LOGIN: &[u64] = &[5 * MIN, 10 * MIN, 20 * MIN, 40 * MIN, HOUR];
const CONNECTION: &[u64] = &[10, 30, MIN, 2 * MIN, 5 * MIN, 10 * MIN, 15 * MIN, 30 * MIN, HOUR];

/// The largest share of a wait that jitter adds.
const JITTER: f64 = 0.2;
/// A named wait is not stretched by more than this.
const NAMED_JITTER: f64 = 30.0;
/// So often a named wait is taken at its word. Later it only counts where it is longer than the
/// table: a server that says "in 60 seconds" for days is not asked every minute for days.
const NAMED_TRIES: u32 = 3;

/// The wait after `tries` tries (from 1), `jitter` within 0..1; `named` is what the reply said.
pub fn next_wait(cause: Cause, tries: u32, named: Option<Duration>, jitter: f64) -> Duration {
    let jitter = jitter.clamp(0.0, 1.0) * JITTER;
    let planned = planned(cause, tries);
    match named {
        Some(named) if tries <= NAMED_TRIES || named >= planned => {
            let added = (named.as_secs_f64() * jitter).min(NAMED_JITTER);
            named + Duration::from_secs_f64(added)
        }
        _ => planned.mul_f64(1.0 + jitter),
    }
}

/// How many tries the transient schedule makes within the window, the first one included.
pub fn max_attempts(window: Duration) -> u32 {
    let mut tries = 1;
    let mut elapsed = planned(Cause::Transient, tries);
    while elapsed <= window {
        tries += 1;
        elapsed += planned(Cause::Transient, tries);
    }
    tries
}

fn planned(cause: Cause, tries: u32) -> Duration {
    let waits = match cause {
        Cause::Relay => RELAY,
        Cause::Login => LOGIN,
        Cause::Transient => TRANSIENT,
        Cause::Greylisted => GREYLISTED,
        Cause::Connection => CONNECTION,
    };
    let at = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    Duration::from_secs(waits[at.min(waits.len() - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(cause: Cause, tries: std::ops::RangeInclusive<u32>) -> Vec<u64> {
        tries.map(|n| next_wait(cause, n, None, 0.0).as_secs()).collect()
    }

    #[test]
    fn the_waits_are_those_of_the_table() {
        let transient = [120, 300, 600, 1200, 2400, 3600, 7200, 14400, 14400];
        assert_eq!(seconds(Cause::Transient, 1..=9), transient);
        assert_eq!(
            seconds(Cause::Greylisted, 1..=8),
            [300, 600, 1200, 2400, 3600, 7200, 14400, 14400]
        );
        assert_eq!(seconds(Cause::Relay, 1..=9), [30, 60, 120, 300, 600, 900, 1800, 3600, 3600]);
        assert_eq!(seconds(Cause::Login, 1..=6), [300, 600, 1200, 2400, 3600, 3600]);
        let connection = [10, 30, 60, 120, 300, 600, 900, 1800, 3600, 3600];
        assert_eq!(seconds(Cause::Connection, 1..=10), connection);
        assert_eq!(seconds(Cause::Transient, 0..=0), [120]);
        assert_eq!(next_wait(Cause::Relay, u32::MAX, None, 0.0).as_secs(), 3600);
    }

    #[test]
    fn jitter_only_adds_up_to_a_fifth() {
        let wait = |jitter| next_wait(Cause::Transient, 2, None, jitter).as_secs();
        assert_eq!(
            [wait(0.0), wait(0.5), wait(1.0), wait(7.0), wait(-1.0)],
            [300, 330, 360, 360, 300]
        );
    }

    #[test]
    fn a_refused_login_is_repeated_more_slowly_than_any_other_fault_of_a_relay() {
        for tries in 1..20 {
            assert!(
                next_wait(Cause::Login, tries, None, 0.0)
                    >= next_wait(Cause::Relay, tries, None, 0.0)
            );
        }
    }

    #[test]
    fn a_named_wait_is_honoured_and_never_cut_short() {
        let wait = |tries, named, jitter| {
            next_wait(Cause::Greylisted, tries, Some(Duration::from_secs(named)), jitter).as_secs()
        };
        assert_eq!([wait(1, 60, 0.0), wait(1, 60, 1.0)], [60, 72]);
        assert_eq!([wait(1, 3600, 0.0), wait(1, 3600, 1.0)], [3600, 3630]);
        assert_eq!(wait(3, 60, 0.0), 60);
        assert_eq!(wait(4, 60, 0.0), 2400);
        assert_eq!(wait(7, 86400, 0.0), 86400);
        assert_eq!(wait(1, 0, 1.0), 0);
    }

    #[test]
    fn the_window_says_how_many_tries_there_are() {
        let hours = |n| max_attempts(Duration::from_secs(n * HOUR));
        // 2 + 5 + 10 + 20 minutes fit into the first hour, the 40 minutes after them do not.
        assert_eq!([hours(0), hours(1), hours(24)], [1, 5, 12]);
        assert_eq!(max_attempts(DEFAULT_WINDOW), 36);
    }
}
