//! What stands in the query beside a raw message: the fields that a JSON request has for it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::super::{Lifetime, OnUnknown, Priority, issues::Issues, labels, options};

pub(super) struct Options {
    /// Who gets it, whatever its header says; empty: those whom the header names.
    pub rcpt: Vec<String>,
    pub tags: BTreeSet<String>,
    pub metadata: BTreeMap<String, String>,
    pub priority: Option<Priority>,
    pub send_at: Option<DateTime<Utc>>,
    /// When it leaves at the earliest.
    pub leaves: DateTime<Utc>,
    pub lifetime: Option<Lifetime>,
    pub on_unknown: Option<OnUnknown>,
    pub reject_suppressed: Option<bool>,
    pub ignored: Vec<String>,
}

/// Reads it by the rules of the JSON request.
pub(super) fn parse(
    issues: &mut Issues,
    query: Vec<(String, String)>,
    now: DateTime<Utc>,
) -> Options {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in query {
        fields.entry(name).or_default().push(value);
    }
    // These are read by the route.
    fields.remove("wait");
    fields.remove("dryRun");
    let rcpt = fields.remove("rcpt").unwrap_or_default();
    let tags = fields.remove("tag").map(|it| it.into_iter().map(Value::String).collect());
    let mut text = |name: &str| match fields.remove(name).as_deref() {
        None => Value::Null,
        Some([one]) => Value::String(one.clone()),
        Some(_) => {
            issues.add(name, "must stand there once");
            Value::Null
        }
    };
    let (priority, send_at) = (text("priority"), text("sendAt"));
    let (expires_at, on_unknown) = (text("expiresAt"), text("onUnknown"));
    let (ttl, reject) = (as_json(text("ttl")), as_json(text("rejectSuppressed")));
    let metadata = as_json(text("metadata"));
    let send_at = options::parse_send_at(issues, send_at, now);
    let leaves = send_at.map_or(now, |at| at.max(now));
    Options {
        rcpt,
        tags: labels::parse_tags(issues, tags.unwrap_or_default()),
        metadata: labels::parse_metadata(issues, metadata),
        priority: options::parse_choice(issues, "priority", priority),
        send_at,
        leaves,
        lifetime: options::parse_lifetime(issues, expires_at, ttl, leaves),
        on_unknown: options::parse_choice(issues, "onUnknown", on_unknown),
        reject_suppressed: issues.boolean("rejectSuppressed", reject),
        ignored: fields.into_keys().collect(),
    }
}

/// A value that JSON would not have in quotes.
fn as_json(value: Value) -> Value {
    match &value {
        Value::String(text) => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    }
}
