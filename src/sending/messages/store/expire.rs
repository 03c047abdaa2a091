//! The end of waiting. A step judges its own message, but where no relay can be used no step runs:
//! this looks at the messages themselves.

use std::time::Duration;

use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    lock_messages,
    settle::{self, Settled},
};
use crate::{
    error::Result,
    events::{self, Event},
    interval::interval,
    metrics::Metrics,
    queue,
};

/// At most this many messages in one transaction, so that no lock is held for long.
const BATCH: i64 = 500;

/// Ends the waiting of messages that nobody works on: past their own time they expire, past the
/// retry window they have failed. Answers how many messages.
pub async fn expire(db: &PgPool, metrics: &Metrics, window: Duration) -> Result<usize> {
    let mut tx = db.begin().await?;
    // The jobs are the small table. Ids are made in order of time; what is left is looked up.
    let ids = sqlx::query_scalar!(
        "select job_id from jobs
         where state = 'ready' and exists (
             select from messages where message_id = job_id
             and (expires_at <= now() or coalesce(window_from, messages.created_at) <= now() - $1::interval))
         order by job_id limit $2
         for update of jobs skip locked",
        interval(window),
        BATCH,
    )
    .fetch_all(&mut *tx)
    .await?;
    lock_messages(&mut tx, &ids).await?;
    let rows = sqlx::query!(
        r#"update recipients set
             state = case when maybe_accepted then 'unknown'
                          when messages.expires_at <= now() then 'expired' else 'failed' end,
             next_at = null,
             settled_at = case when not maybe_accepted then clock_timestamp() end,
             reason = coalesce(recipients.reason, 'expired'),
             text = coalesce(recipients.text, 'its time was over before a relay could be asked')
         from messages
         where messages.message_id = recipients.message_id and recipients.message_id = any($1)
           and state in ('queued', 'deferred')
         returning recipients.message_id, address, state, text as "text!""#,
        &ids,
    )
    .fetch_all(&mut *tx)
    .await?;
    let told: Vec<Event> = rows
        .iter()
        .map(|row| Event {
            kind: match row.state.as_str() {
                "unknown" => "recipient.unknown",
                "expired" => "recipient.expired",
                _ => "recipient.failed",
            },
            subject: "message",
            subject_id: row.message_id,
            data: json!({ "address": row.address, "reason": "expired", "text": row.text }),
        })
        .collect();
    events::emit(&mut tx, &told).await?;
    last_words(&mut tx, &ids).await?;
    let settled = settle::count(&mut tx, &ids).await?;
    queue::end(&mut tx, &ids).await?;
    tx.commit().await?;
    rows.iter().for_each(|row| metrics.sending.recipient(&row.state));
    Settled::tell(&settled, metrics);
    Ok(ids.len())
}

async fn last_words(conn: &mut sqlx::PgConnection, ids: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "update messages set last_error = coalesce(last_error, 'its time was over before a relay could be asked')
         where message_id = any($1)",
        ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}
