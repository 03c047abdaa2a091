//! Among how many processes a relay's connections are divided.

use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use crate::{error::Result, interval::interval};

/// The processes that live, the youngest first: what cannot be divided goes to the one that has just
/// come, since the one before it may be dead.
pub async fn living(db: &PgPool, lease: Duration) -> Result<Vec<Uuid>> {
    let ids = sqlx::query_scalar!(
        "select process_id from processes where heartbeat_at > clock_timestamp() - $1::interval
         order by started_at desc, process_id desc",
        interval(lease),
    )
    .fetch_all(db)
    .await?;
    Ok(ids)
}
