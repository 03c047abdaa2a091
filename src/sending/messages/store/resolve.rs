//! A person's word on recipients of whom nothing is known.

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
    sending::messages::resolve::{Answer, Resolution},
};

/// Settles unknown recipients of a message, or queues them again.
pub async fn resolve(
    (db, metrics): (&PgPool, &Metrics),
    id: Uuid,
    sees: Sees,
    resolution: &Resolution,
    who: &Who,
) -> Result<()> {
    let mut tx = db.begin().await?;
    lock_one(&mut tx, id, sees).await?;
    let only: Option<Vec<String>> = resolution
        .recipients
        .as_ref()
        .map(|list| list.iter().map(crate::address::EmailAddress::lookup_key).collect());
    let text = format!("said to be {} by {}", resolution.answer.as_str(), who.name);
    let rows = sqlx::query!(
        "update recipients set
             state = $2,
             next_at = case when $2 = 'queued' then clock_timestamp() end,
             settled_at = case when $2 <> 'queued' then clock_timestamp() end,
             resends = resends + ($2 = 'queued')::integer,
             reason = 'resolved', text = $3
         where message_id = $1 and state = 'unknown' and ($4::text[] is null or lookup_key = any($4))
         returning address",
        id,
        resolution.answer.state().as_str(),
        text,
        only.as_deref(),
    )
    .fetch_all(&mut *tx)
    .await?;
    if rows.is_empty() {
        return Err(Error::conflict(
            "NOTHING_UNKNOWN",
            "no such recipient of this message is unknown",
        ));
    }
    let told: Vec<Event> = rows
        .iter()
        .map(|row| Event {
            kind: resolution.answer.state().event(),
            subject: "message",
            subject_id: id,
            data: serde_json::json!({ "address": row.address, "reason": "resolved", "text": text }),
        })
        .collect();
    events::emit(&mut tx, &told).await?;
    if resolution.answer == Answer::Resend {
        let again = i32::try_from(rows.len()).unwrap_or(i32::MAX);
        sqlx::query!("update messages set resends = resends + $2 where message_id = $1", id, again)
            .execute(&mut *tx)
            .await?;
    }
    let settled = settle::count(&mut tx, &[id]).await?;
    settle::queue_again(&mut tx, &[id]).await?;
    let after = serde_json::json!({ "as": resolution.answer, "recipients": rows.len() });
    audit::record(&mut tx, who, "message.resolved", ("message", id), None, Some(&after)).await?;
    tx.commit().await?;
    Settled::tell(&settled, metrics);
    rows.iter().for_each(|_| metrics.sending.recipient(resolution.answer.state().as_str()));
    Ok(())
}
