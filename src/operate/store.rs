//! Counting across tables, and nothing else.

use serde::Serialize;
use sqlx::PgPool;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    error::Result,
    metrics::{Chore, Kind, Work},
};

/// The work that is left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backlog {
    /// Jobs with work left, waiting or running.
    pub depth: i64,
    /// How long the longest-waiting due job has been due.
    pub oldest_seconds: f64,
}

pub(super) async fn backlog(db: &PgPool) -> Result<Backlog> {
    let backlog = sqlx::query_as!(
        Backlog,
        r#"select count(*) as "depth!",
                  greatest(0, coalesce(extract(epoch from clock_timestamp()
                      - min(due_at) filter (where state = 'ready')), 0))::float8 as "oldest_seconds!"
           from jobs where state <> 'dead'"#
    )
    .fetch_one(db)
    .await?;
    Ok(backlog)
}

/// How many relays may be used.
pub(super) async fn active_relays(db: &PgPool) -> Result<i64> {
    let active = sqlx::query_scalar!(r#"select count(*) as "count!" from relays where active"#);
    Ok(active.fetch_one(db).await?)
}

/// Seconds since the last heartbeat of this process (none before its first one), and how many other
/// processes have spoken within a lease, whose length is given in seconds.
pub(super) async fn heartbeats(db: &PgPool, me: Uuid, lease: f64) -> Result<(Option<f64>, i64)> {
    let row = sqlx::query!(
        r#"select extract(epoch from clock_timestamp() - max(heartbeat_at) filter (where process_id = $1))::float8 as mine,
                  count(*) filter (where process_id <> $1
                      and heartbeat_at > clock_timestamp() - make_interval(secs => $2)) as "others!"
           from processes"#,
        me,
        lease,
    )
    .fetch_one(db)
    .await?;
    Ok((row.mine, row.others))
}

/// Everything that the metrics show of the database.
pub(super) async fn work(db: &PgPool, lease: f64) -> Result<Work> {
    let kinds = kinds(db).await?;
    let unknown =
        sqlx::query_scalar!(r#"select count(*) as "n!" from recipients where state = 'unknown'"#)
            .fetch_one(db)
            .await?;
    let paused =
        sqlx::query!(r#"select scope, count(*) as "n!" from paused_scopes group by scope"#)
            .fetch_all(db)
            .await?;
    let processes = sqlx::query_scalar!(
        r#"select count(*) as "n!" from processes
           where heartbeat_at > clock_timestamp() - make_interval(secs => $1)"#,
        lease,
    )
    .fetch_one(db)
    .await?;
    let chores = sqlx::query_as!(
        Chore,
        r#"select name, extract(epoch from clock_timestamp() - last_run_at)::float8 as "age_seconds!",
                  last_error is not null as "failed!"
           from chores where last_run_at is not null"#
    )
    .fetch_all(db)
    .await?;
    let paused = paused.into_iter().map(|it| (it.scope, it.n)).collect();
    Ok(Work { kinds, unknown, paused, processes, chores })
}

async fn kinds(db: &PgPool) -> Result<Vec<Kind>> {
    let kinds = sqlx::query_as!(
        Kind,
        r#"select kind,
                  count(*) filter (where state = 'ready' and due_at <= clock_timestamp()) as "due!",
                  count(*) filter (where state = 'ready' and due_at > clock_timestamp()) as "scheduled!",
                  count(*) filter (where state = 'leased') as "leased!",
                  count(*) filter (where state = 'dead') as "dead!",
                  greatest(0, coalesce(extract(epoch from clock_timestamp()
                      - min(due_at) filter (where state = 'ready')), 0))::float8 as "oldest_seconds!"
           from jobs group by kind"#
    )
    .fetch_all(db)
    .await?;
    Ok(kinds)
}
