//! Counting across tables, and nothing else.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgPool};
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

/// The server behind a connection.
#[derive(Debug)]
pub(super) struct Server {
    pub version: String,
    /// As `server_version_num` says it: 150004 is 15.4.
    pub number: i32,
    pub now: DateTime<Utc>,
}

pub(super) async fn server(conn: &mut PgConnection) -> Result<Server> {
    let server = sqlx::query_as!(
        Server,
        r#"select current_setting('server_version') as "version!",
                  current_setting('server_version_num')::integer as "number!",
                  clock_timestamp() as "now!""#
    )
    .fetch_one(conn)
    .await?;
    Ok(server)
}

/// What a session sets to find out whether it keeps it.
pub(super) const MARK: &str = "here";

pub(super) async fn set_mark(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select set_config('postroom.doctor', $1, false)", MARK).fetch_one(conn).await?;
    Ok(())
}

pub(super) async fn mark(conn: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select current_setting('postroom.doctor', true)").fetch_one(conn).await
}

/// The sealed text that tells whether a secret key is the one of this database.
pub(super) async fn secret_check(db: &PgPool) -> Result<Option<String>> {
    let kept = sqlx::query_scalar!("select value from installation where name = 'secret_check'");
    Ok(kept.fetch_optional(db).await?)
}

/// The lane whose due work waits the longest.
#[derive(Debug)]
pub(super) struct Lane {
    pub kind: String,
    pub lane: String,
    /// How long its first job has been due.
    pub seconds: f64,
    /// How many of its jobs are due.
    pub jobs: i64,
    /// It, or everything, is paused.
    pub paused: bool,
}

pub(super) async fn oldest_lane(db: &PgPool) -> Result<Option<Lane>> {
    let lane = sqlx::query_as!(
        Lane,
        r#"select kind, lane, count(*) as "jobs!",
                  extract(epoch from clock_timestamp() - min(due_at))::float8 as "seconds!",
                  exists (select from paused_scopes where scope = 'all'
                          or scope = 'sender_domain' and value = jobs.lane) as "paused!"
           from jobs where state = 'ready' and due_at <= clock_timestamp()
           group by kind, lane order by min(due_at) limit 1"#
    )
    .fetch_optional(db)
    .await?;
    Ok(lane)
}

/// The domains that the active relays send for.
pub(super) async fn sender_domains(db: &PgPool) -> Result<Vec<String>> {
    let domains = sqlx::query_scalar!(
        r#"select distinct lower(it.domain) as "domain!" from relays,
                  unnest(array[relays.domain, nullif(split_part(from_address, '@', -1), '')]) as it (domain)
           where active and kind = 'smtp' and it.domain is not null order by 1"#
    )
    .fetch_all(db)
    .await?;
    Ok(domains)
}
