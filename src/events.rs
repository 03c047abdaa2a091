//! The outbox: what happened, written in the transaction that made it so.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, interval::interval};

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

/// Forgets at most so many events older than this, from behind a key on; the key of the last.
pub async fn forget(
    conn: &mut PgConnection,
    age: Duration,
    behind: Uuid,
    most: i64,
) -> Result<(u64, Option<Uuid>)> {
    let gone = sqlx::query!(
        r#"with old as (
               select event_id from events
               where event_id > $2 and event_id < v7_floor(now() - $1::interval)
                 and at < clock_timestamp() - $1::interval
               order by event_id limit $3
               for update skip locked
           ), gone as (
               delete from events using old where events.event_id = old.event_id
           )
           select count(*) as "n!", (array_agg(event_id order by event_id desc))[1] as last from old"#,
        interval(age),
        behind,
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok((gone.n.unsigned_abs(), gone.last))
}

/// How many events are older than this, counted up to `most`.
pub async fn count(conn: &mut PgConnection, age: Duration, most: i64) -> Result<i64> {
    let n = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (
               select from events where event_id < v7_floor(now() - $1::interval)
                 and at < clock_timestamp() - $1::interval limit $2
           ) as old"#,
        interval(age),
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok(n)
}

/// When the oldest came.
pub async fn oldest(conn: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    let oldest = sqlx::query_scalar!("select at from events order by event_id limit 1");
    Ok(oldest.fetch_optional(conn).await?)
}
