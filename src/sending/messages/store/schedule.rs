//! Another time for a message that waits for its first attempt.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::lock_one;
use crate::{
    accounts::access::Sees,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
    queue,
};

/// Moves the time of sending; none, or a time that has passed, is now. A lifetime asked for in
/// seconds moves along; one asked for as a time stays, and must not end before.
pub async fn reschedule(
    db: &PgPool,
    id: Uuid,
    sees: Sees,
    at: Option<DateTime<Utc>>,
    who: &Who,
) -> Result<()> {
    let mut tx = db.begin().await?;
    lock_one(&mut tx, id, sees).await?;
    let is = sqlx::query!(
        r#"select send_at, ttl is null and expires_at <= greatest($2, clock_timestamp()) as ends_before,
                  exists (select from jobs where job_id = $1 and state = 'ready')
                  and not exists (select from attempts where message_id = $1) as "waits!"
           from messages where message_id = $1"#,
        id,
        at,
    )
    .fetch_one(&mut *tx)
    .await?;
    if !is.waits {
        return Err(Error::conflict(
            "ALREADY_BEGUN",
            "this message does not wait for its first attempt any more",
        ));
    }
    if is.ends_before == Some(true) {
        return Err(Error::invalid("sendAt", "must be earlier than expiresAt"));
    }
    let due = sqlx::query_scalar!(
        r#"update messages set
             send_at = $2, window_from = greatest($2, clock_timestamp()),
             expires_at = case when ttl is null then expires_at
                               else greatest($2, clock_timestamp()) + make_interval(secs => ttl) end
           where message_id = $1
           returning window_from as "due!""#,
        id,
        at,
    )
    .fetch_one(&mut *tx)
    .await?;
    sqlx::query!(
        "update recipients set next_at = $2, faults = 0
         where message_id = $1 and state in ('queued', 'deferred')",
        id,
        due,
    )
    .execute(&mut *tx)
    .await?;
    redate(&mut tx, id, due).await?;
    queue::postpone(&mut tx, &[id], &[due]).await?;
    let (before, after) = (json!({ "sendAt": is.send_at }), json!({ "sendAt": at }));
    let told = Event {
        kind: "message.rescheduled",
        subject: "message",
        subject_id: id,
        data: after.clone(),
    };
    events::emit(&mut tx, &[told]).await?;
    let (before, after) = (Some(&before), Some(&after));
    audit::record(&mut tx, who, "message.rescheduled", ("message", id), before, after).await?;
    tx.commit().await?;
    Ok(())
}

/// The `Date` of our own header is the time of sending. No copy has left yet, and nobody works on
/// the message: these are still the bytes that all attempts will send.
async fn redate(conn: &mut PgConnection, id: Uuid, at: DateTime<Utc>) -> Result<()> {
    let first = sqlx::query_scalar!(
        "select bytes from message_content where message_id = $1 and seq = 0",
        id
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(first) = first else { return Ok(()) };
    let Some(end) = first.windows(2).position(|it| it == b"\r\n") else { return Ok(()) };
    if !first.starts_with(b"Date: ") {
        return Ok(());
    }
    let mut bytes = format!("Date: {}", at.to_rfc2822()).into_bytes();
    bytes.extend_from_slice(&first[end..]);
    sqlx::query!(
        "with chunk as (
             update message_content set bytes = $2 where message_id = $1 and seq = 0
         )
         update messages set size = size + length($2) - $3 where message_id = $1",
        id,
        bytes,
        i64::try_from(first.len()).unwrap_or(i64::MAX),
    )
    .execute(conn)
    .await?;
    Ok(())
}
