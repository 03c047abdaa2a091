//! The outbox: what happened, written in the transaction that made it so.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Result;

/// One fact. `data` never holds a body or a secret.
#[derive(Debug, Clone)]
pub struct Event {
    /// Dotted: `send.completed`, `recipient.sent`, `relay.created`.
    pub kind: &'static str,
    /// What it is about: `message`, `relay`, `api_key`.
    pub subject: &'static str,
    pub subject_id: Uuid,
    pub data: Value,
}

/// Writes events in their order.
pub async fn emit(conn: &mut PgConnection, events: &[Event]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = events.iter().map(|_| Uuid::now_v7()).collect();
    let kinds: Vec<_> = events.iter().map(|it| it.kind.to_owned()).collect();
    let subjects: Vec<_> = events.iter().map(|it| it.subject.to_owned()).collect();
    let subject_ids: Vec<_> = events.iter().map(|it| it.subject_id).collect();
    let data: Vec<_> = events.iter().map(|it| it.data.clone()).collect();
    sqlx::query!(
        "insert into events (event_id, kind, subject, subject_id, data)
         select * from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::jsonb[])",
        &ids,
        &kinds,
        &subjects,
        &subject_ids,
        &data,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes an address out of what is told of these subjects, and the words of servers, which may name
/// it too. Answers of how many events.
pub async fn erase_address(
    conn: &mut PgConnection,
    subject_ids: &[Uuid],
    lookup_key: &str,
    alias: &str,
) -> Result<u64> {
    let done = sqlx::query!(
        "update events set data = data || jsonb_build_object('address', $3::text, 'text', null)
         where subject_id = any($1) and lower(data ->> 'address') = $2",
        subject_ids,
        lookup_key,
        alias,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}
