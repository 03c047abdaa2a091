//! The end of waiting, by somebody's word.

use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    lock_one,
    settle::{self, Settled},
};
use crate::{
    accounts::access::Sees,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
    metrics::Metrics,
    queue,
};

/// Cancels the recipients of a message that wait. A process that works on it finds out at its
/// mark, and sends no dot; the job stays its own until then.
pub async fn cancel(db: &PgPool, id: Uuid, sees: Sees, who: &Who, metrics: &Metrics) -> Result<()> {
    let mut tx = db.begin().await?;
    lock_one(&mut tx, id, sees).await?;
    let text = format!("cancelled by {}", who.name);
    let rows = sqlx::query!(
        "update recipients set
             state = case when maybe_accepted then 'unknown' else 'cancelled' end, next_at = null,
             settled_at = case when not maybe_accepted then clock_timestamp() end,
             code = null, enhanced = null, reason = 'cancelled', text = $2
         where message_id = $1 and state in ('queued', 'deferred')
         returning address, state",
        id,
        text,
    )
    .fetch_all(&mut *tx)
    .await?;
    if rows.is_empty() {
        return Err(Error::conflict(
            "NOTHING_WAITS",
            "no recipient of this message waits: each is on its way or has an outcome",
        ));
    }
    let told: Vec<Event> = rows
        .iter()
        .map(|row| Event {
            kind: match row.state.as_str() {
                "unknown" => "recipient.unknown",
                _ => "recipient.cancelled",
            },
            subject: "message",
            subject_id: id,
            data: json!({ "address": row.address, "reason": "cancelled", "text": text }),
        })
        .collect();
    events::emit(&mut tx, &told).await?;
    sqlx::query!("update messages set last_error = $2 where message_id = $1", id, text)
        .execute(&mut *tx)
        .await?;
    let settled = settle::count(&mut tx, &[id]).await?;
    queue::end_idle(&mut tx, &[id]).await?;
    let after = json!({ "recipients": rows.len() });
    audit::record(&mut tx, who, "message.cancelled", ("message", id), None, Some(&after)).await?;
    tx.commit().await?;
    Settled::tell(&settled, metrics);
    rows.iter().for_each(|row| metrics.sending.recipient(&row.state));
    Ok(())
}
