//! Chores: work without a payload that makes something so, now and then. Whoever holds a chore's
//! lease does its round, so that several processes do each round once.

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    interval::interval,
};

/// So long after its last sign of life a round is taken for dead.
const LEASE: Duration = Duration::from_secs(60);

/// What is done now and then.
pub struct Chore {
    /// The same in all processes, and stable.
    pub name: &'static str,
    /// How often, over all processes. A round that nobody did comes with the next start.
    pub every: Duration,
    /// Rung when a round is wanted at once, whenever the last one was.
    pub bell: Arc<Notify>,
}

/// Does rounds of a chore until told to stop. A round that fails is told and tried again; it never
/// ends the chore. The first round comes at once, if none was done lately.
pub async fn keep_doing<F, Fut>(db: PgPool, chore: Chore, round: F, stop: CancellationToken)
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let Chore { name, every, bell } = chore;
    let mut not_within = every.mul_f64(0.9);
    loop {
        if let Err(error) = once(&db, name, not_within, &round).await {
            tracing::warn!(chore = name, %error, "a chore failed; its next round tries again");
        }
        not_within = tokio::select! {
            () = stop.cancelled() => return,
            () = bell.notified() => Duration::ZERO,
            () = tokio::time::sleep(every) => every.mul_f64(0.9),
        };
    }
}

async fn once<F, Fut>(db: &PgPool, name: &str, not_within: Duration, round: &F) -> Result<()>
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
           and (chores.last_run_at is null or chores.last_run_at <= clock_timestamp() - $3::interval)
         returning lease_id as "lease_id!""#,
        name,
        interval(LEASE),
        interval(not_within),
    )
    .fetch_optional(db)
    .await?;
    let Some(lease) = lease else { return Ok(()) };
    let done = tokio::select! {
        done = round() => done,
        () = lost(db, name, lease) => Err(Error::Unavailable {
            neighbour: "the database",
            source: anyhow::anyhow!("the lease was lost, so the round was left"),
        }),
    };
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

/// Keeps a lease, and ends when it is not ours any more: another process may have begun its round.
async fn lost(db: &PgPool, name: &str, lease: Uuid) {
    let mut kept = Instant::now();
    loop {
        tokio::time::sleep(LEASE / 6).await;
        let renewed = sqlx::query!(
            "update chores set leased_until = clock_timestamp() + $3::interval where name = $1 and lease_id = $2",
            name,
            lease,
            interval(LEASE),
        )
        .execute(db)
        .await;
        match renewed {
            Ok(it) if it.rows_affected() > 0 => kept = Instant::now(),
            Ok(_) => return,
            // While the database is away, nobody else can take it either, but for its end.
            Err(_) if kept.elapsed() < LEASE => (),
            Err(_) => return,
        }
    }
}
