//! How the message is to be treated on its way.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use utoipa::ToSchema;

use super::issues::Issues;

/// 30 days, in seconds.
const MAX_TTL: i64 = 30 * 24 * 60 * 60;

/// The order among messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    High,
    Normal,
    Bulk,
}

/// How long the message may wait, in the words of the request: a repeated request with a `ttl` is
/// the same request, although it would end later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    Until(DateTime<Utc>),
    Seconds(i64),
}

impl Lifetime {
    /// Its end, for a message that leaves at this time.
    pub fn end(self, leaves: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::Until(end) => end,
            Self::Seconds(n) => leaves + TimeDelta::seconds(n),
        }
    }
}

/// The furthest that a message is sent ahead.
const MAX_AHEAD: TimeDelta = TimeDelta::days(30);

/// Why a time of sending is refused, or that time kept to the microsecond as the database does.
/// One that has long passed says nothing; whether a near one has passed is for the database's clock.
pub fn send_at(text: &str, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, &'static str> {
    let at = DateTime::parse_from_rfc3339(text)
        .map_err(|_| "must be a time as in 2026-01-31T12:00:00Z")?
        .to_utc()
        .trunc_subsecs(6);
    if at > now + MAX_AHEAD {
        return Err("must be at most 30 days ahead");
    }
    Ok(Some(at).filter(|at| *at > now - TimeDelta::days(1)))
}

pub(super) fn parse_send_at(
    issues: &mut Issues,
    value: Value,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    let text = issues.string("sendAt", value)?;
    send_at(&text, now).unwrap_or_else(|why| {
        issues.add("sendAt", why);
        None
    })
}

/// One word out of a closed list.
pub(super) fn parse_choice<T: DeserializeOwned>(
    issues: &mut Issues,
    path: &str,
    value: Value,
) -> Option<T> {
    let word = issues.string(path, value)?;
    serde_json::from_value(Value::String(word))
        .map_err(|err| issues.add(path, err.to_string()))
        .ok()
}

pub(super) fn parse_lifetime(
    issues: &mut Issues,
    expires_at: Value,
    ttl: Value,
    leaves: DateTime<Utc>,
) -> Option<Lifetime> {
    if !expires_at.is_null() && !ttl.is_null() {
        issues.add("ttl", "not together with expiresAt");
    }
    let until = parse_expires_at(issues, expires_at, leaves);
    parse_ttl(issues, ttl).or(until)
}

/// RFC 3339, later than the message leaves, kept to the microsecond as the database does.
fn parse_expires_at(issues: &mut Issues, value: Value, leaves: DateTime<Utc>) -> Option<Lifetime> {
    let text = issues.string("expiresAt", value)?;
    let Ok(end) = DateTime::parse_from_rfc3339(&text) else {
        issues.add("expiresAt", "must be a time as in 2026-01-31T12:00:00Z");
        return None;
    };
    let end = end.to_utc().trunc_subsecs(6);
    if end <= leaves {
        issues.add("expiresAt", "must be in the future, and later than sendAt");
    }
    Some(Lifetime::Until(end))
}

fn parse_ttl(issues: &mut Issues, value: Value) -> Option<Lifetime> {
    match &value {
        Value::Null => None,
        Value::Number(number) => {
            let seconds = number.as_i64().filter(|n| (1..=MAX_TTL).contains(n));
            if seconds.is_none() {
                issues.add("ttl", format!("must be a whole number from 1 to {MAX_TTL}"));
            }
            seconds.map(Lifetime::Seconds)
        }
        other => {
            issues.wrong_type("ttl", "number", other);
            None
        }
    }
}
