//! The wait a server names in its words: "try again in 300 seconds".
//!
//! SMTP has no field for it; greylisters and rate limits say it in prose. A number counts only
//! after a word that asks to come back, with a unit, as a clock `hh:mm:ss`, or bare at the very
//! end of its clause, so that an address, a code or a ticket number is never taken for a wait.

use std::sync::LazyLock;
use std::time::Duration;

use regex::{Captures, Regex};

use super::rule::pattern;

/// Sooner than this is no wait, later than this is no promise.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A word that asks to come back, then up to 60 characters of the same sentence.
const ASKS: &str = r"\b(?:try|retry|retrying|retries|again|resend|resubmit|come back|return|wait|gr[ea]y-?list(?:ed|ing)|postponed|deferred|delayed|blocked|throttled|reconnect|next attempt)\b";
const GAP: &str = r"((?:[^.;!?\d]|\.\S){0,60}?)";
const UNIT: &str = r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?)\b";

/// The longest sensible reading that the text offers, bounded to 5 s and 24 h; `None` if none.
pub fn wait_named(text: &str) -> Option<Duration> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = with_unit(&text).or_else(|| clock(&text)).or_else(|| bare(&text))?;
    Some(found.clamp(SHORTEST, LONGEST))
}

/// `in 5 minutes`, `for 1 hour and 5 minutes`, `in an hour`, and the order turned around:
/// `in 5 minutes please try again`.
fn with_unit(text: &str) -> Option<Duration> {
    static AFTER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r"{ASKS}{GAP}(?:^|[\s(=:])(\d{{1,6}}|an?|one)[ -]?{UNIT}(?:(?:,? and |,? )(\d{{1,2}}) ?{UNIT})?"
        ))
    });
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r"\b(?:in|after)( )(\d{{1,6}}|an?|one) ?{UNIT}(?:(?:,? and |,? )(\d{{1,2}}) ?{UNIT})?,? (?:please )?(?:try|retry|resend)\b"
        ))
    });
    let read = |found: Captures<'_>| {
        if speaks_of_the_past(&found[1]) {
            return None;
        }
        let first = amount(&found[2])? * seconds_in(&found[3]);
        let second = match (found.get(4), found.get(5)) {
            (Some(number), Some(unit)) => amount(number.as_str())? * seconds_in(unit.as_str()),
            _ => 0,
        };
        Some(Duration::from_secs(first + second))
    };
    AFTER.captures_iter(text).find_map(read).or_else(|| BEFORE.captures(text).and_then(read))
}

/// `after 00:04:59`, unless it is a time of the day.
fn clock(text: &str) -> Option<Duration> {
    static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(r"{ASKS}{GAP}\b(\d{{1,2}}):(\d{{2}}):(\d{{2}})(.{{0,6}})"))
    });
    static TIME_OF_DAY: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(:|\d|\.\d| ?([+-]\d|utc|gmt|z\b|ces?t|[ap]m\b|[ecmp][sd]t))"));
    let found = CLOCK.captures(text)?;
    if TIME_OF_DAY.is_match(&found[5]) || speaks_of_the_past(&found[1]) {
        return None;
    }
    let (hours, minutes, seconds) = (amount(&found[2])?, amount(&found[3])?, amount(&found[4])?);
    Some(Duration::from_secs(hours * 3600 + minutes * 60 + seconds))
}

/// `retry time 3600`, `Retry-After: 300`: seconds, when nothing follows in the clause.
fn bare(text: &str) -> Option<Duration> {
    static BARE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\b(?:retry|try again|wait)[ -]?(?:after|in|time|delay|for)?\s?[:=]?\s?(\d{1,6})(?:$|[)\];,]|\.(?:\s|$))",
        )
    });
    let found = BARE.captures(text)?;
    Some(Duration::from_secs(amount(&found[1])?))
}

/// "Connection timed out after 30 seconds", "100 messages per hour", "in the last 24 hours".
fn speaks_of_the_past(gap: &str) -> bool {
    static PAST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"time.?out|timed out|\bper\b|\blast\b|\bpast\b|\bevery\b|exceeded|limit|more than")
    });
    PAST.is_match(gap)
}

fn amount(digits: &str) -> Option<u64> {
    if digits.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Some(1)
    } else {
        digits.parse().ok()
    }
}

fn seconds_in(unit: &str) -> u64 {
    match unit.as_bytes()[0].to_ascii_lowercase() {
        b's' => 1,
        b'm' => 60,
        b'h' => 60 * 60,
        _ => 24 * 60 * 60,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_however_it_is_worded() {
        let cases = [
            ("Greylisted, please try again in 300 seconds", 300),
            ("retry in 5 minutes", 300),
            ("Please retry after 00:04:59", 299),
            ("You are greylisted for 5 minutes", 300),
            ("Too many messages. Try again in 1 hour.", 3600),
            ("deferred, retry time 3600", 3600),
            ("Retry-After: 120", 120),
            ("Greylisting in effect, please come back in 00:05:00", 300),
            ("greylisted, come back later (in 298 seconds)", 298),
            ("please wait 60 seconds before trying again", 60),
            ("Try again in 4 minutes and 12 seconds", 252),
            ("You may retry in 1 hour, 30 minutes", 5400),
            ("In 10 minutes, please try again", 600),
            ("please try again in an hour", 3600),
            ("temporarily blocked for 15 mins", 900),
            ("try again\nin 90s", 90),
            ("GREYLISTED FOR 00:04:21 (see the postmaster's page)", 261),
            ("too fast, retry in 600", 600),
        ];
        for (text, seconds) in cases {
            assert_eq!(wait_named(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_wait_is_not_taken_for_one() {
        let cases = [
            "Try again later",
            "Greylisted client 192.0.2.30, try again later",
            "try again later, ticket 300 8812-44",
            "Please try again after contacting us, case 4711 minus one",
            "idle timeout after 300 seconds, closing; try again later",
            "deferred: connection timed out after 30 seconds",
            "You exceeded 100 messages per 24 hours, try again tomorrow",
            "try again after 14:30:00 UTC",
            "retry after 451 4.7.1 goes away",
            "450 4.2.1 The user is receiving mail too quickly",
            "blocked, more than 50 mails in the last 24 hours",
            "message 1234 seconds the motion",
            "try again in a few minutes",
            "",
        ];
        for text in cases {
            assert_eq!(wait_named(text), None, "{text}");
        }
    }

    #[test]
    fn a_wait_has_bounds() {
        assert_eq!(wait_named("try again in 1 second"), Some(SHORTEST));
        assert_eq!(wait_named("try again in 14 days"), Some(LONGEST));
        assert_eq!(wait_named("try again in 999999 hours"), Some(LONGEST));
    }
}
