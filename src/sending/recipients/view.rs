//! What is kept of an address, as the API shows it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::sending::{messages::addressed::Row, suppressions::Suppression};

/// What is kept of an address; never a body.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    pub address: String,
    /// Why it is not mailed, if so.
    pub suppression: Option<HeldSuppression>,
    /// How many messages to it there are, by what became of it.
    pub states: BTreeMap<String, i64>,
    /// Copies in the sandbox.
    pub sandbox_messages: i64,
    /// The messages to it, the newest first; the `Link` header names the next page.
    pub messages: Vec<HeldMessage>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldSuppression {
    pub reason: String,
    /// Where the knowledge comes from.
    pub source: String,
    pub note: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
}

/// A message to it, and what became of it there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldMessage {
    /// Of the message: `GET /jobs/{id}`.
    pub id: Uuid,
    /// With its angle brackets.
    pub message_id: String,
    pub created_at: DateTime<Utc>,
    pub from: String,
    pub subject: String,
    /// `to`, `cc` or `bcc`.
    pub field: String,
    pub state: String,
    pub tries: i32,
    pub code: Option<i16>,
    pub enhanced_code: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub settled_at: Option<DateTime<Utc>>,
}

/// How an address is to be erased. Unknown fields are refused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Erasure {
    /// Its suppression too: then it can be mailed again.
    pub suppression: bool,
}

/// What was erased.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// What stands where the address was.
    pub alias: String,
    pub messages: usize,
    /// Messages that have not settled, and were left alone.
    pub open: usize,
    pub events: u64,
    pub sandbox_messages: u64,
    pub suppression: bool,
}

impl From<Suppression> for HeldSuppression {
    fn from(it: Suppression) -> Self {
        Self { reason: it.reason, source: it.source, note: it.note, created_at: it.created_at }
    }
}

impl From<Row> for HeldMessage {
    fn from(row: Row) -> Self {
        Self {
            id: row.message_id,
            message_id: format!("<{}>", row.internet_id),
            created_at: row.created_at,
            from: row.from_header,
            subject: row.subject,
            field: row.field,
            state: row.state,
            tries: row.tries,
            code: row.code,
            enhanced_code: row.enhanced,
            reason: row.reason,
            text: row.text,
            next_attempt_at: row.next_at,
            settled_at: row.settled_at,
        }
    }
}
