//! Chores: work without a payload that makes something so, now and then. Whoever holds a chore's
//! lease does its round, so that several processes do each round once.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{error::Result, interval::interval};

/// A round may take this long before another process takes it for dead.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// Does rounds of a chore, `every` so often over all processes, until told to stop. A round that
/// fails is told and tried again; it never ends the chore. The first round comes at once.
pub async fn keep_doing<F, Fut>(
    db: PgPool,
    name: &'static str,
    every: Duration,
    round: F,
    stop: CancellationToken,
) where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    loop {
        if let Err(error) = once(&db, name, every, &round).await {
            tracing::warn!(chore = name, %error, "a chore failed; its next round tries again");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => (),
        }
    }
}

async fn once<F, Fut>(db: &PgPool, name: &str, every: Duration, round: &F) -> Result<()>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let lease = sqlx::query_scalar!(
        r#"insert into chores (name, lease_id, leased_until)
         values ($1, gen_random_uuid(), clock_timestamp() + $2::interval)
         on conflict on constraint chores_pkey do update
         set lease_id = excluded.lease_id, leased_until = excluded.leased_until
         where (chores.leased_until is null or chores.leased_until < clock_timestamp())
           and (chores.last_run_at is null or chores.last_run_at < clock_timestamp() - $3::interval)
         returning lease_id as "lease_id!""#,
        name,
        interval(LEASE),
        interval(every.mul_f64(0.9)),
    )
    .fetch_optional(db)
    .await?;
    let Some(lease) = lease else { return Ok(()) };
    let done = round().await;
    sqlx::query!(
        "update chores set lease_id = null, leased_until = null, last_run_at = clock_timestamp(), last_error = $3
         where name = $1 and lease_id = $2",
        name,
        lease,
        done.as_ref().err().map(ToString::to_string),
    )
    .execute(db)
    .await?;
    done
}
