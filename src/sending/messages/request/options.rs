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
    pub fn end(self, now: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::Until(end) => end,
            Self::Seconds(n) => now + TimeDelta::seconds(n),
        }
    }
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
    now: DateTime<Utc>,
) -> Option<Lifetime> {
    if !expires_at.is_null() && !ttl.is_null() {
        issues.add("ttl", "not together with expiresAt");
    }
    let until = parse_expires_at(issues, expires_at, now);
    parse_ttl(issues, ttl).or(until)
}

/// RFC 3339, in the future, kept to the microsecond as the database does.
fn parse_expires_at(issues: &mut Issues, value: Value, now: DateTime<Utc>) -> Option<Lifetime> {
    let text = issues.string("expiresAt", value)?;
    let Ok(end) = DateTime::parse_from_rfc3339(&text) else {
        issues.add("expiresAt", "must be a time as in 2026-01-31T12:00:00Z");
        return None;
    };
    let end = end.to_utc().trunc_subsecs(6);
    if end <= now {
        issues.add("expiresAt", "must be in the future");
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
