//! Addresses in a request: who gets the message, who sends it, who gets the answers.

use std::collections::HashSet;

use serde_json::Value;

use super::issues::Issues;
use crate::address::{EmailAddress, Mailbox};

/// How many different recipients one message may have, over `to`, `cc` and `bcc`.
pub const MAX_RECIPIENTS: usize = 50;

#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
}

/// Reads all recipients. One that stands there several times counts once, at its first place.
pub(super) fn parse(issues: &mut Issues, to: &Value, cc: &Value, bcc: &Value) -> Parsed {
    if to.is_null() {
        issues.add("to", "Required");
    } else if to.as_array().is_some_and(Vec::is_empty) {
        issues.add("to", "at least one recipient is required");
    }
    let mut seen = HashSet::new();
    let mut read = |field: &str, value: &Value| {
        let message = format!("Invalid email address(es) in \"{field}\"");
        let mut list = many(issues, field, value, &message);
        list.retain(|mailbox| seen.insert(mailbox.address().lookup_key()));
        list
    };
    let optional = |value: &Value| if value == "" { Value::Null } else { value.clone() };
    let parsed = Parsed {
        to: read("to", to),
        cc: read("cc", &optional(cc)),
        bcc: read("bcc", &optional(bcc)),
    };
    if seen.len() > MAX_RECIPIENTS {
        issues.add("to", "too many recipients");
    }
    parsed
}

/// The sender; an empty text is no sender.
pub(super) fn parse_from(issues: &mut Issues, value: &Value) -> Option<Mailbox> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::Array(_) => {
            issues.wrong_type("from", "string", value);
            None
        }
        value => one(issues, "from", value, "invalid from"),
    }
}

pub(super) fn parse_reply_to(issues: &mut Issues, value: &Value) -> Vec<Mailbox> {
    let list = many(issues, "replyTo", value, "invalid replyTo");
    if list.len() > MAX_RECIPIENTS {
        issues.add("replyTo", "too many addresses");
    }
    list
}

/// A text with commas, one address in its parts, or a list of either.
fn many(issues: &mut Issues, path: &str, value: &Value, message: &str) -> Vec<Mailbox> {
    match value {
        Value::String(text) => Mailbox::parse_list(text).unwrap_or_else(|_| {
            issues.add(path, message);
            Vec::new()
        }),
        Value::Array(items) => {
            let read = |(at, item): (usize, &Value)| {
                let path = format!("{path}.{at}");
                if item.is_null() {
                    issues.add(&path, "Required");
                }
                one(issues, &path, item, message)
            };
            items.iter().enumerate().filter_map(read).collect()
        }
        value => one(issues, path, value, message).into_iter().collect(),
    }
}

fn one(issues: &mut Issues, path: &str, value: &Value, message: &str) -> Option<Mailbox> {
    match value {
        Value::Null => None,
        Value::String(text) => text.parse().map_err(|_| issues.add(path, message)).ok(),
        Value::Object(parts) => {
            let part = |name: &str| parts.get(name).cloned().unwrap_or_default();
            let name = issues.string(&format!("{path}.name"), part("name"));
            let email = issues.required_string(&format!("{path}.email"), part("email"))?;
            let address: EmailAddress =
                email.trim_matches(' ').parse().map_err(|_| issues.add(path, message)).ok()?;
            Mailbox::new(name.as_deref(), address)
                .map_err(|err| issues.add(format!("{path}.name"), err.to_string()))
                .ok()
        }
        other => {
            issues.wrong_type(path, "string", other);
            None
        }
    }
}
