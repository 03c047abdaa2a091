//! The composed bytes of messages that have settled.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, interval::interval};

/// Forgets the content of at most so many messages that settled longer ago than this.
pub async fn forget(
    conn: &mut PgConnection,
    age: Duration,
    behind: Uuid,
    most: i64,
) -> Result<(u64, Option<Uuid>)> {
    let gone = sqlx::query!(
        r#"with old as (
               select content.message_id from message_content content join messages using (message_id)
               where content.seq = 0 and content.message_id > $2
                 and content.message_id < v7_floor(now() - $1::interval)
                 and settled_at < clock_timestamp() - $1::interval
                 and not exists (select from jobs where job_id = content.message_id)
               order by content.message_id limit $3
               for update of messages skip locked
           ), gone as (
               delete from message_content using old where message_content.message_id = old.message_id
           )
           select count(*) as "n!", (array_agg(message_id order by message_id desc))[1] as last from old"#,
        interval(age),
        behind,
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok((gone.n.unsigned_abs(), gone.last))
}

/// The content of how many messages would go, counted up to `most`.
pub async fn count(conn: &mut PgConnection, age: Duration, most: i64) -> Result<i64> {
    let n = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (
               select from message_content content join messages using (message_id)
               where content.seq = 0 and content.message_id < v7_floor(now() - $1::interval)
                 and settled_at < clock_timestamp() - $1::interval
                 and not exists (select from jobs where job_id = content.message_id)
               limit $2
           ) as old"#,
        interval(age),
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok(n)
}

/// When the oldest message that has content was accepted.
pub async fn oldest(conn: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    let oldest = sqlx::query_scalar!(
        "select created_at from messages
         where message_id = (select message_id from message_content order by message_id limit 1)"
    );
    Ok(oldest.fetch_optional(conn).await?)
}
