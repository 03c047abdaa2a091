//! What a step of a job needs to know before it asks a relay.

use bytes::Bytes;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{error::Result, on_unknown::OnUnknown, sending::messages::Mode};

/// A message with work left.
#[derive(Debug, Clone)]
pub struct Head {
    pub message_id: Uuid,
    pub api_key_id: Option<Uuid>,
    pub from_address: String,
    pub mode: String,
    pub size: i64,
    pub smtputf8: bool,
    pub eight_bit: bool,
    /// Past its `expires_at`.
    pub expired: bool,
    /// Seconds since its retry window opened.
    pub age: f64,
    /// No relay has been asked yet.
    pub untried: bool,
    pub suppression_exempt: bool,
    /// The message's own policy, else its key's.
    pub on_unknown: Option<OnUnknown>,
}

/// A recipient that is due.
#[derive(Debug, Clone)]
pub struct Due {
    pub recipient_id: Uuid,
    pub address: String,
    pub lookup_key: String,
    pub envelope_sender: String,
    pub state: String,
    pub tries: i32,
    pub faults: i32,
    pub resends: i32,
    /// It is on the suppression list now, for this reason.
    pub suppressed: Option<String>,
}

impl Head {
    pub fn mode(&self) -> Mode {
        Mode::from_row(&self.mode)
    }
}

pub async fn head(db: &PgPool, id: Uuid) -> Result<Option<Head>> {
    let head = sqlx::query_as!(
        Head,
        r#"select message_id, api_key_id, from_address, messages.mode, size, smtputf8, eight_bit,
                  coalesce(messages.expires_at <= clock_timestamp(), false) as "expired!",
                  extract(epoch from clock_timestamp() - coalesce(messages.window_from, messages.created_at))::float8 as "age!",
                  messages.started_at is null as "untried!",
                  messages.suppression_exempt, coalesce(messages.on_unknown, api_keys.on_unknown) as "on_unknown?: OnUnknown"
           from messages left join api_keys using (api_key_id)
           where message_id = $1"#,
        id,
    )
    .fetch_optional(db)
    .await?;
    Ok(head)
}

pub async fn due(db: &PgPool, id: Uuid) -> Result<Vec<Due>> {
    let due = sqlx::query_as!(
        Due,
        r#"select recipient_id, address, lookup_key, envelope_sender, state, tries, faults, resends,
                  suppressions.reason as "suppressed?"
           from recipients left join suppressions using (lookup_key)
           where message_id = $1 and state in ('queued', 'deferred') and next_at <= clock_timestamp()
           order by position"#,
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(due)
}

/// The composed bytes, in their chunks.
pub async fn content(db: &PgPool, id: Uuid) -> Result<Vec<Bytes>> {
    let chunks = sqlx::query_scalar!(
        "select bytes from message_content where message_id = $1 order by seq",
        id
    )
    .fetch_all(db)
    .await?;
    Ok(chunks.into_iter().map(Bytes::from).collect())
}
