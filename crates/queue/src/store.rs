//! The SQL of `jobs` and `processes`.

use std::{collections::HashSet, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Channel, Lease, Priority};
use crate::{error::Result, interval::interval};

/// A job to be written: its id is its owner's id, so that an owner has at most one of a kind.
#[derive(Debug, Clone)]
pub struct NewJob<'a> {
    pub job_id: Uuid,
    pub lane: &'a str,
    pub priority: Priority,
    /// None, or a time that has passed: now.
    pub due: Option<DateTime<Utc>>,
}

/// Puts jobs into the queue, in the caller's transaction. A job that is there already stays as it
/// is, but is due then at the latest (if a process works on it, its finish looks again anyway).
pub async fn enqueue(conn: &mut PgConnection, kind: &str, jobs: &[NewJob<'_>]) -> Result<()> {
    let ids: Vec<_> = jobs.iter().map(|job| job.job_id).collect();
    let lanes: Vec<_> = jobs.iter().map(|job| job.lane.to_owned()).collect();
    let priorities: Vec<_> = jobs.iter().map(|job| job.priority as i16).collect();
    let due: Vec<_> = jobs.iter().map(|job| job.due).collect();
    sqlx::query!(
        "insert into jobs (job_id, kind, lane, priority, due_at)
         select job_id, $1, lane, priority, greatest(new.due_at, clock_timestamp())
         from unnest($2::uuid[], $3::text[], $4::smallint[], $5::timestamptz[])
              as new (job_id, lane, priority, due_at)
         on conflict on constraint jobs_pkey do update
         set due_at = least(jobs.due_at, excluded.due_at),
             state = case when jobs.state = 'dead' then 'ready' else jobs.state end,
             dead_reason = null,
             deaths = case when jobs.state = 'dead' then 0 else jobs.deaths end",
        kind,
        &ids,
        &lanes,
        &priorities,
        &due as &[Option<DateTime<Utc>>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets anew when jobs are due on which nobody works. The caller has locked them.
pub async fn postpone(conn: &mut PgConnection, jobs: &[Uuid], due: &[DateTime<Utc>]) -> Result<()> {
    sqlx::query!(
        "update jobs set due_at = new.due_at
         from unnest($1::uuid[], $2::timestamptz[]) as new (job_id, due_at)
         where jobs.job_id = new.job_id and jobs.state = 'ready'",
        jobs,
        due,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Leases at most `free[i]` due jobs of `lanes[i]`, in order of priority, then due time.
pub(super) async fn claim(
    db: &PgPool,
    kind: &str,
    process_id: Uuid,
    lease: Duration,
    lanes: &[String],
    free: &[i64],
) -> Result<Vec<Lease>> {
    let leases = sqlx::query_as!(
        Lease,
        r#"with picked as materialized (
             select taken.job_id
             from unnest($2::text[], $3::bigint[]) as open (lane, free)
             cross join lateral (
                 select found.job_id
                 from unnest(array[0, 1, 2]::smallint[]) as p (priority)
                 cross join lateral (
                     select job_id from jobs
                     where kind = $1 and state = 'ready' and jobs.lane = open.lane
                       and jobs.priority = p.priority and due_at <= now() and deaths < 2
                     order by due_at
                     limit open.free
                     for update skip locked
                 ) as found
                 limit open.free
             ) as taken
         )
         update jobs set state = 'leased', lease_id = gen_random_uuid(), leased_by = $4,
                         leased_until = clock_timestamp() + $5
         from picked where jobs.job_id = picked.job_id
         returning jobs.job_id, lease_id as "lease_id!", lane, deaths"#,
        kind,
        lanes,
        free,
        process_id,
        interval(lease),
    )
    .fetch_all(db)
    .await?;
    Ok(leases)
}

/// Whether a job is due that must run alone.
pub(super) async fn suspect_is_due(db: &PgPool, kind: &str) -> Result<bool> {
    let due = sqlx::query_scalar!(
        r#"select exists (select from jobs where kind = $1 and state = 'ready' and deaths >= 2
                          and due_at <= now()) as "due!""#,
        kind,
    )
    .fetch_one(db)
    .await?;
    Ok(due)
}

/// Leases one job that must run alone.
pub(super) async fn claim_suspect(
    db: &PgPool,
    kind: &str,
    process_id: Uuid,
    lease: Duration,
) -> Result<Option<Lease>> {
    let lease = sqlx::query_as!(
        Lease,
        r#"with picked as materialized (
             select job_id from jobs
             where kind = $1 and state = 'ready' and deaths >= 2 and due_at <= now()
             order by due_at limit 1 for update skip locked
         )
         update jobs set state = 'leased', lease_id = gen_random_uuid(), leased_by = $2,
                         leased_until = clock_timestamp() + $3
         from picked where jobs.job_id = picked.job_id
         returning jobs.job_id, lease_id as "lease_id!", lane, deaths"#,
        kind,
        process_id,
        interval(lease),
    )
    .fetch_optional(db)
    .await?;
    Ok(lease)
}

/// Locks those of the jobs that are still under the lease given with them, and says which.
/// The locks are taken in order of the job's id and held to the end of the transaction.
pub async fn fence(
    conn: &mut PgConnection,
    mine: &[(Uuid, Uuid)],
) -> Result<HashSet<(Uuid, Uuid)>> {
    let (jobs, leases): (Vec<_>, Vec<_>) = mine.iter().copied().unzip();
    let live = sqlx::query!(
        r#"select jobs.job_id, jobs.lease_id as "lease_id!" from jobs
         join unnest($1::uuid[], $2::uuid[]) as mine (job_id, lease_id) using (job_id)
         where jobs.lease_id = mine.lease_id
         order by jobs.job_id
         for update of jobs"#,
        &jobs,
        &leases,
    )
    .fetch_all(conn)
    .await?;
    Ok(live.into_iter().map(|row| (row.job_id, row.lease_id)).collect())
}

/// Says which of these leases, whose rows the caller has locked, have not run out, and gives those
/// a whole lease again. To be asked after every other lock is held: a statement that waited for a
/// row which nobody changed does not look at its time again.
pub async fn renew(
    conn: &mut PgConnection,
    mine: &[(Uuid, Uuid)],
    lease: Duration,
) -> Result<HashSet<(Uuid, Uuid)>> {
    let (jobs, leases): (Vec<_>, Vec<_>) = mine.iter().copied().unzip();
    let live = sqlx::query!(
        r#"update jobs set leased_until = clock_timestamp() + $3
         from unnest($1::uuid[], $2::uuid[]) as mine (job_id, lease_id)
         where jobs.job_id = mine.job_id and jobs.lease_id = mine.lease_id
           and jobs.leased_until > clock_timestamp()
         returning jobs.job_id, jobs.lease_id as "lease_id!""#,
        &jobs,
        &leases,
        interval(lease),
    )
    .fetch_all(conn)
    .await?;
    Ok(live.into_iter().map(|row| (row.job_id, row.lease_id)).collect())
}

/// A sign of life of jobs whose step goes on: deaths in a row are counted from here again. The
/// caller holds the fence.
pub async fn alive(conn: &mut PgConnection, jobs: &[Uuid]) -> Result<()> {
    sqlx::query!("update jobs set deaths = 0 where job_id = any($1) and deaths > 0", jobs)
        .execute(conn)
        .await?;
    Ok(())
}

/// Locks the rows of these jobs, whoever has them.
pub async fn lock(conn: &mut PgConnection, jobs: &[Uuid]) -> Result<()> {
    sqlx::query!("select job_id from jobs where job_id = any($1) order by job_id for update", jobs)
        .fetch_all(conn)
        .await?;
    Ok(())
}

/// Takes jobs out of the queue on which nobody works; a worker ends its own. The caller has locked them.
pub async fn end_idle(conn: &mut PgConnection, jobs: &[Uuid]) -> Result<()> {
    sqlx::query!("delete from jobs where job_id = any($1) and state = 'ready'", jobs)
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes ended jobs out of the queue. The caller holds the fence.
pub async fn end(conn: &mut PgConnection, jobs: &[Uuid]) -> Result<()> {
    sqlx::query!("delete from jobs where job_id = any($1)", jobs).execute(conn).await?;
    Ok(())
}

/// Puts jobs back, each due at its time. The caller holds the fence. A finished step is a sign of
/// life: deaths in a row are counted from here again.
pub async fn again(conn: &mut PgConnection, jobs: &[Uuid], due: &[DateTime<Utc>]) -> Result<()> {
    sqlx::query!(
        "update jobs set state = 'ready', due_at = again.due_at, deaths = 0,
                         lease_id = null, leased_until = null, leased_by = null
         from unnest($1::uuid[], $2::timestamptz[]) as again (job_id, due_at)
         where jobs.job_id = again.job_id",
        jobs,
        due,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes waiting jobs due now. One that is leased looks at its owner's rows again when it ends.
pub async fn hasten(conn: &mut PgConnection, jobs: &[Uuid]) -> Result<()> {
    sqlx::query!(
        "update jobs set due_at = least(due_at, clock_timestamp()) where job_id = any($1) and state = 'ready'",
        jobs,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Hands one job back before its lease ends: due after `wait`, nothing counted.
pub(super) async fn hand_back(db: &PgPool, lease: &Lease, wait: Duration) -> Result<()> {
    sqlx::query!(
        "update jobs set state = 'ready', due_at = clock_timestamp() + $3,
                         lease_id = null, leased_until = null, leased_by = null
         where job_id = $1 and lease_id = $2",
        lease.job_id,
        lease.lease_id,
        interval(wait),
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Pushes out the leases given. Rows that are locked are being written about by their worker, and
/// are left for the next beat: waiting for them could close a circle of locks.
pub(super) async fn extend(
    db: &PgPool,
    jobs: &[Uuid],
    leases: &[Uuid],
    lease: Duration,
) -> Result<u64> {
    let extended = sqlx::query!(
        "with mine as materialized (
             select jobs.job_id from jobs
             join unnest($1::uuid[], $2::uuid[]) as held (job_id, lease_id) using (job_id)
             where jobs.lease_id = held.lease_id
             for update of jobs skip locked
         )
         update jobs set leased_until = clock_timestamp() + $3
         from mine where jobs.job_id = mine.job_id",
        jobs,
        leases,
        interval(lease),
    )
    .execute(db)
    .await?;
    Ok(extended.rows_affected())
}

/// Says that this process lives. The first time, all others are told.
pub(super) async fn beat(db: &PgPool, process_id: Uuid, host: &str) -> Result<()> {
    sqlx::query!(
        "with beaten as (
             insert into processes (process_id, host, pid, version) values ($1, $2, $3, $4)
             on conflict on constraint processes_pkey do update set heartbeat_at = clock_timestamp()
             returning xmax = 0 as is_first
         )
         select pg_notify($5, '') from beaten where is_first",
        process_id,
        host,
        i32::try_from(std::process::id()).unwrap_or(0),
        env!("CARGO_PKG_VERSION"),
        Channel::Relays.as_str(),
    )
    .fetch_optional(db)
    .await?;
    Ok(())
}

/// Lets every lease of this process run out now: what it still works on is no death.
pub(super) async fn let_go(db: &PgPool, process_id: Uuid) -> Result<()> {
    sqlx::query!(
        "update jobs set leased_until = clock_timestamp() where leased_by = $1 and state = 'leased'",
        process_id,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Says that this process left in good order, tells all others, and forgets those that are long
/// dead.
pub(super) async fn leave(db: &PgPool, process_id: Uuid) -> Result<()> {
    sqlx::query!(
        "with gone as (
             delete from processes
             where process_id = $1 or heartbeat_at < clock_timestamp() - interval '1 day'
             returning 1
         )
         select pg_notify($2, '') from gone limit 1",
        process_id,
        Channel::Relays.as_str(),
    )
    .fetch_optional(db)
    .await?;
    Ok(())
}

/// A lease that ran out, locked by [`expired`].
pub(super) struct Expired {
    pub job_id: Uuid,
    pub deaths: i16,
    /// Its owner's heartbeat has ended too.
    pub owner_died: bool,
}

/// Locks leases of this kind that have run out.
pub(super) async fn expired(
    conn: &mut PgConnection,
    kind: &str,
    lease: Duration,
) -> Result<Vec<Expired>> {
    let rows = sqlx::query_as!(
        Expired,
        r#"select jobs.job_id, jobs.deaths,
                  coalesce((select processes.heartbeat_at < clock_timestamp() - $2::interval
                            from processes where process_id = jobs.leased_by), false) as "owner_died!"
           from jobs
           where kind = $1 and state = 'leased' and leased_until < now()
           order by job_id limit 200
           for update of jobs skip locked"#,
        kind,
        interval(lease),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Puts jobs back whose lease ran out: due now, or dead with its reason.
pub(super) async fn take_back(
    conn: &mut PgConnection,
    jobs: &[Uuid],
    deaths: &[i16],
    dead: &[bool],
) -> Result<()> {
    sqlx::query!(
        "update jobs set state = case when back.dead then 'dead' else 'ready' end,
                         dead_reason = case when back.dead then 'its process died with it three times' end,
                         due_at = clock_timestamp(), deaths = back.deaths,
                         lease_id = null, leased_until = null, leased_by = null
         from unnest($1::uuid[], $2::smallint[], $3::boolean[]) as back (job_id, deaths, dead)
         where jobs.job_id = back.job_id",
        jobs,
        deaths,
        dead,
    )
    .execute(conn)
    .await?;
    Ok(())
}
