//! Idempotency keys whose time is over. Each brought its end along when it was written.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, interval::interval};

/// Forgets at most so many that ended longer ago than this. They have no key in order of time, so
/// there is nothing to begin behind: what was forgotten is not met again.
pub async fn forget(
    conn: &mut PgConnection,
    age: Duration,
    _behind: Uuid,
    most: i64,
) -> Result<(u64, Option<Uuid>)> {
    let gone = sqlx::query!(
        "with old as (
             select api_key_id, key from idempotency_keys where expires_at < clock_timestamp() - $1::interval
             order by expires_at limit $2
             for update skip locked
         )
         delete from idempotency_keys using old
         where idempotency_keys.api_key_id = old.api_key_id and idempotency_keys.key = old.key",
        interval(age),
        most,
    )
    .execute(conn)
    .await?;
    Ok((gone.rows_affected(), None))
}

/// How many would go, counted up to `most`.
pub async fn count(conn: &mut PgConnection, age: Duration, most: i64) -> Result<i64> {
    let n = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (
               select from idempotency_keys where expires_at < clock_timestamp() - $1::interval limit $2
           ) as old"#,
        interval(age),
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok(n)
}

/// When the first of them ends, or has ended.
pub async fn oldest(conn: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    let oldest =
        sqlx::query_scalar!("select expires_at from idempotency_keys order by expires_at limit 1");
    Ok(oldest.fetch_optional(conn).await?)
}
