//! Messages as they are looked at.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::{accounts::access::Sees, error::Result};

/// A message, without its content.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Row {
    pub message_id: Uuid,
    pub api_key_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub internet_id: String,
    pub from_header: String,
    pub to_header: String,
    pub cc_header: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub size: i64,
    pub tags: Vec<String>,
    pub metadata: Value,
    pub send_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub n_recipients: i32,
    pub n_open: i32,
    pub n_unknown: i32,
    pub n_accepted: i32,
    pub n_attempts: i32,
    pub resends: i32,
    pub retries: i32,
    pub started_at: Option<DateTime<Utc>>,
    pub last_relay: Option<String>,
    pub last_error: Option<String>,
    pub outcome: Option<String>,
    pub settled_at: Option<DateTime<Utc>>,
    pub erased_at: Option<DateTime<Utc>>,
    /// A process works on it now.
    pub leased: bool,
    pub next_at: Option<DateTime<Utc>>,
}

/// A message with all that is known of it.
#[derive(Debug, Clone)]
pub struct Whole {
    pub row: Row,
    pub recipients: Vec<Recipient>,
    pub attempts: Vec<Attempt>,
    pub said: Vec<Said>,
}

/// A message as it was at one moment: what one part says, the others bear out.
pub async fn whole(db: &PgPool, sees: Sees, id: Uuid) -> Result<Option<Whole>> {
    let mut tx = db.begin_with("begin isolation level repeatable read read only").await?;
    let Some(row) = one(&mut *tx, sees, id).await? else { return Ok(None) };
    let recipients = recipients(&mut *tx, id).await?;
    let attempts = attempts(&mut *tx, id).await?;
    let said = said(&mut *tx, id).await?;
    tx.commit().await?;
    Ok(Some(Whole { row, recipients, attempts, said }))
}

async fn one(db: impl PgExecutor<'_>, sees: Sees, id: Uuid) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        r#"select message_id, api_key_id, messages.created_at, internet_id, from_header, to_header, cc_header, reply_to,
                  subject, size, tags, metadata, expires_at, n_recipients, n_open, n_unknown,
                  n_accepted, n_attempts, resends, retries, send_at, started_at, last_relay, last_error, outcome, settled_at, erased_at,
                  coalesce(jobs.state = 'leased', false) as "leased!", jobs.due_at as "next_at?"
           from messages left join jobs on job_id = message_id
           where message_id = $1 and ($2::uuid is null or api_key_id = $2)"#,
        id,
        sees.key(),
    )
    .fetch_optional(db)
    .await?;
    Ok(row)
}

/// Whether the message has settled, or nothing will become of it soon: its time has not come, or
/// some recipient waits for a later try or a person's word.
pub async fn is_at_rest(db: &PgPool, id: Uuid) -> Result<bool> {
    let at_rest = sqlx::query_scalar!(
        r#"select settled_at is not null or coalesce(send_at > clock_timestamp(), false)
                  or exists (select from recipients where recipients.message_id = $1
                             and (state in ('deferred', 'unknown') or state = 'queued' and faults > 0)) as "at_rest!"
           from messages where message_id = $1"#,
        id,
    )
    .fetch_optional(db)
    .await?;
    Ok(at_rest.unwrap_or(true))
}

/// A recipient, with the last words about it.
#[derive(Debug, Clone)]
pub struct Recipient {
    pub field: String,
    pub address: String,
    pub state: String,
    pub next_at: Option<DateTime<Utc>>,
    pub tries: i32,
    pub relay: Option<String>,
    pub code: Option<i16>,
    pub enhanced: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub remote_queue_id: Option<String>,
    pub settled_at: Option<DateTime<Utc>>,
}

async fn recipients(db: impl PgExecutor<'_>, id: Uuid) -> Result<Vec<Recipient>> {
    let rows = sqlx::query_as!(
        Recipient,
        r#"select field, address, recipients.state, next_at, tries, attempts.relay_name as "relay?", recipients.code,
                  recipients.enhanced, recipients.reason, recipients.text, remote_queue_id, settled_at
           from recipients left join attempts using (attempt_id)
           where recipients.message_id = $1 order by position"#,
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// An attempt, with what it said of each recipient.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub attempt_id: Uuid,
    pub relay_name: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub phase: String,
    pub result: Option<String>,
    pub code: Option<i16>,
    pub enhanced: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub peer: Option<String>,
    pub tls: Option<String>,
}

async fn attempts(db: impl PgExecutor<'_>, id: Uuid) -> Result<Vec<Attempt>> {
    let rows = sqlx::query_as!(
        Attempt,
        "select attempt_id, relay_name, started_at, ended_at, phase, result, code, enhanced, reason, text, peer, tls
         from attempts where message_id = $1 order by started_at, attempt_id",
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// What an attempt said of a recipient.
#[derive(Debug, Clone)]
pub struct Said {
    pub attempt_id: Uuid,
    pub address: String,
    pub result: String,
    pub code: Option<i16>,
    pub enhanced: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
}

async fn said(db: impl PgExecutor<'_>, id: Uuid) -> Result<Vec<Said>> {
    let rows = sqlx::query_as!(
        Said,
        "select said.attempt_id, address, said.result, said.code, said.enhanced, said.reason, said.text
         from attempt_recipients said
         join attempts using (attempt_id) join recipients using (recipient_id)
         where attempts.message_id = $1 order by said.attempt_id, position",
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}
