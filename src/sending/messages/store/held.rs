//! Recipients that wait for an operator or for a limit.

use sqlx::PgPool;
use uuid::Uuid;

use super::lock_messages;
use crate::{error::Result, queue};

/// At most this many messages in one transaction, so that no lock is held for long.
const BATCH: i64 = 500;

/// Makes those of the next messages behind `last` due. Answers the last message; none at the end.
pub async fn wake(db: &PgPool, last: Option<Uuid>) -> Result<Option<Uuid>> {
    let mut tx = db.begin().await?;
    let ids = sqlx::query_scalar!(
        "select distinct message_id from recipients
         where reason in ('paused', 'limited') and state in ('queued', 'deferred')
           and ($1::uuid is null or message_id > $1)
         order by message_id limit $2",
        last,
        BATCH,
    )
    .fetch_all(&mut *tx)
    .await?;
    queue::lock(&mut tx, &ids).await?;
    lock_messages(&mut tx, &ids).await?;
    sqlx::query!(
        "update recipients set next_at = clock_timestamp()
         where message_id = any($1) and reason in ('paused', 'limited') and state in ('queued', 'deferred')",
        &ids,
    )
    .execute(&mut *tx)
    .await?;
    queue::hasten(&mut tx, &ids).await?;
    tx.commit().await?;
    Ok(ids.last().copied())
}
