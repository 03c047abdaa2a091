//! The mark: written just before the final dot of a transaction may be sent.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::lock_messages;
use crate::{error::Result, queue};

/// A transaction whose bytes are sent, all but the dot.
#[derive(Debug, Clone)]
pub struct Mark {
    pub message_id: Uuid,
    pub lease_id: Uuid,
    pub attempt_id: Uuid,
    pub relay_id: Option<Uuid>,
    pub relay_name: String,
    pub process_id: Uuid,
    pub started_at: DateTime<Utc>,
    /// Those that the server accepted at RCPT.
    pub recipients: Vec<Uuid>,
}

impl Mark {
    fn lease(&self) -> (Uuid, Uuid) {
        (self.message_id, self.lease_id)
    }
}

/// Writes marks together; says for each whether its dot may be sent. It may not when the lease is
/// gone or has run out, when the message's time is over, or when one of its recipients does not wait
/// any more: it was cancelled, suppressed or settled by someone else meanwhile.
pub async fn mark(db: &PgPool, marks: &[Mark], lease: Duration) -> Result<Vec<bool>> {
    let mut tx = db.begin().await?;
    let mine: Vec<_> = marks.iter().map(|it| (it.message_id, it.lease_id)).collect();
    let fenced = queue::fence(&mut tx, &mine).await?;
    let ids: Vec<_> = fenced.iter().map(|(message, _)| *message).collect();
    lock_messages(&mut tx, &ids).await?;

    let wanted: Vec<Uuid> = marks
        .iter()
        .filter(|it| fenced.contains(&it.lease()))
        .flat_map(|it| it.recipients.iter().copied())
        .collect();
    let waiting: HashSet<Uuid> = sqlx::query_scalar!(
        "select recipient_id from recipients join messages using (message_id)
         where recipient_id = any($1) and state in ('queued', 'deferred')
           and coalesce(messages.expires_at > clock_timestamp(), true)
           and (messages.suppression_exempt
                or not exists (select from suppressions where suppressions.lookup_key = recipients.lookup_key))
         order by recipient_id for update of recipients",
        &wanted,
    )
    .fetch_all(&mut *tx)
    .await?
    .into_iter()
    .collect();
    let leased = queue::renew(&mut tx, &fenced.iter().copied().collect::<Vec<_>>(), lease).await?;
    let go: Vec<bool> = marks
        .iter()
        .map(|it| {
            leased.contains(&it.lease()) && it.recipients.iter().all(|id| waiting.contains(id))
        })
        .collect();
    let going: Vec<&Mark> =
        marks.iter().zip(&go).filter(|(_, go)| **go).map(|(it, _)| it).collect();
    if !going.is_empty() {
        insert_attempts(&mut tx, &going).await?;
        let attempt_of: HashMap<Uuid, Uuid> = going
            .iter()
            .flat_map(|it| it.recipients.iter().map(|id| (*id, it.attempt_id)))
            .collect();
        let (recipients, attempts): (Vec<Uuid>, Vec<Uuid>) = attempt_of.into_iter().unzip();
        sqlx::query!(
            "update recipients set state = 'sending', next_at = null, attempt_id = marked.attempt_id
             from unnest($1::uuid[], $2::uuid[]) as marked (recipient_id, attempt_id)
             where recipients.recipient_id = marked.recipient_id",
            &recipients,
            &attempts,
        )
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(go)
}

async fn insert_attempts(conn: &mut sqlx::PgConnection, marks: &[&Mark]) -> Result<()> {
    macro_rules! column {
        ($field:expr) => {
            &marks.iter().map($field).collect::<Vec<_>>()
        };
    }
    sqlx::query!(
        "insert into attempts (attempt_id, message_id, relay_id, relay_name, process_id, started_at, marked_at, phase)
         select attempt_id, message_id, relay_id, relay_name, process_id, started_at, clock_timestamp(), 'data'
         from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::timestamptz[])
              as new (attempt_id, message_id, relay_id, relay_name, process_id, started_at)",
        column!(|it| it.attempt_id),
        column!(|it| it.message_id),
        column!(|it| it.relay_id) as &[Option<Uuid>],
        column!(|it| it.relay_name.clone()),
        column!(|it| it.process_id),
        column!(|it| it.started_at),
    )
    .execute(conn)
    .await?;
    Ok(())
}
