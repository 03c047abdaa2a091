//! The SQL of `retention_runs`, and the frame of a batch.

use std::time::Duration;

use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    Class,
    view::{Forgotten, RetentionRun, RetentionRunState},
};
use crate::{
    audit::{self, Who},
    error::{Error, OnConstraint as _, Result},
    events::{self, Event},
    interval::interval,
};

/// How long runs themselves are remembered.
const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 3600);

/// One batch of a class in a transaction that waits for nobody long. That it is lost in a crash of
/// the database costs nothing, so it does not wait for the disk either.
pub(super) async fn batch(
    db: &PgPool,
    class: &Class,
    window: Duration,
    behind: Uuid,
    size: i64,
) -> Result<(u64, Option<Uuid>)> {
    let mut tx = db.begin().await?;
    sqlx::query!(
        "select set_config('synchronous_commit', 'off', true) as a, set_config('lock_timeout', '500ms', true) as b,
                set_config('statement_timeout', '20s', true) as c"
    )
    .fetch_one(&mut *tx)
    .await?;
    let gone = (class.forget)(&mut tx, window, behind, size).await?;
    tx.commit().await?;
    Ok(gone)
}

/// Whether a batch that failed so may do better a little later: locks, deadlocks, a statement that
/// took too long.
pub(super) fn may_pass(error: &Error) -> bool {
    let Error::Database(sqlx::Error::Database(refusal)) = error else { return false };
    refusal.code().is_some_and(|code| matches!(&*code, "55P03" | "40P01" | "40001" | "57014"))
}

/// Asks for a run; none if one is open.
pub(super) async fn ask(db: &PgPool, who: &Who) -> Result<Option<RetentionRun>> {
    let mut tx = db.begin().await?;
    let asked = sqlx::query_as!(
        RetentionRun,
        r#"insert into retention_runs (run_id, trigger, asked_by, state) values ($1, 'manual', $2, 'waiting')
           returning run_id as id, trigger, asked_by, state as "state: RetentionRunState", asked_at, started_at, ended_at,
                     classes as "classes: sqlx::types::Json<Vec<Forgotten>>""#,
        Uuid::now_v7(),
        who.name,
    )
    .fetch_one(&mut *tx)
    .await
    .on_constraint("retention_runs_open_key", || Error::conflict("RETENTION_RUNNING", ""));
    let run = match asked {
        Ok(run) => run,
        Err(Error::Conflict { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    audit::record(&mut tx, who, "retention.run", ("retention_run", run.id), None, Some(&run))
        .await?;
    tx.commit().await?;
    Ok(Some(run))
}

/// Opens the run that was asked for, or one by the timetable. Whoever calls holds the chore's lease,
/// so a run that is called running is one whose process has died.
pub(super) async fn begin(db: &PgPool) -> Result<Uuid> {
    let mut tx = db.begin().await?;
    sqlx::query!(
        "update retention_runs set state = 'interrupted', ended_at = clock_timestamp() where state = 'running'"
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query!(
        "delete from retention_runs where run_id < v7_floor(clock_timestamp() - $1::interval) and ended_at is not null",
        interval(REMEMBERED),
    )
    .execute(&mut *tx)
    .await?;
    let asked = sqlx::query_scalar!(
        "update retention_runs set state = 'running', started_at = clock_timestamp() where state = 'waiting' returning run_id"
    )
    .fetch_optional(&mut *tx)
    .await?;
    let id = match asked {
        Some(id) => id,
        None => {
            sqlx::query_scalar!(
                "insert into retention_runs (run_id, trigger, state, started_at)
                 values ($1, 'scheduled', 'running', clock_timestamp()) returning run_id",
                Uuid::now_v7(),
            )
            .fetch_one(&mut *tx)
            .await?
        }
    };
    tx.commit().await?;
    Ok(id)
}

/// How far a run is.
pub(super) async fn progress(db: &PgPool, id: Uuid, reports: &[Forgotten]) -> Result<()> {
    let classes = json!(reports);
    sqlx::query!(
        "update retention_runs set classes = $2 where run_id = $1 and state = 'running'",
        id,
        classes
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Closes a run, and tells what it did. One that another process has called interrupted stays so.
pub(super) async fn end(
    db: &PgPool,
    id: Uuid,
    state: RetentionRunState,
    reports: &[Forgotten],
) -> Result<()> {
    let mut tx = db.begin().await?;
    let classes = json!(reports);
    let was_open = sqlx::query!(
        "update retention_runs set state = $2, classes = $3, ended_at = clock_timestamp()
         where run_id = $1 and state = 'running'",
        id,
        state.as_str(),
        &classes,
    )
    .execute(&mut *tx)
    .await?
    .rows_affected();
    // A run that found nothing to do is no news.
    if was_open > 0 && reports.iter().any(|it| it.deleted > 0 || it.error.is_some()) {
        let data = json!({ "state": state.as_str(), "classes": classes });
        let event =
            Event { kind: "retention.ended", subject: "retention_run", subject_id: id, data };
        events::emit(&mut tx, &[event]).await?;
    }
    Ok(tx.commit().await?)
}

/// The last runs, the newest first.
pub(super) async fn runs(db: &PgPool, limit: i64) -> Result<Vec<RetentionRun>> {
    let runs = sqlx::query_as!(
        RetentionRun,
        r#"select run_id as id, trigger, asked_by, state as "state: RetentionRunState", asked_at, started_at, ended_at,
                  classes as "classes: sqlx::types::Json<Vec<Forgotten>>"
           from retention_runs order by run_id desc limit $1"#,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(runs)
}

/// One run.
pub(super) async fn run(db: &PgPool, id: Uuid) -> Result<Option<RetentionRun>> {
    let run = sqlx::query_as!(
        RetentionRun,
        r#"select run_id as id, trigger, asked_by, state as "state: RetentionRunState", asked_at, started_at, ended_at,
                  classes as "classes: sqlx::types::Json<Vec<Forgotten>>"
           from retention_runs where run_id = $1"#,
        id,
    )
    .fetch_optional(db)
    .await?;
    Ok(run)
}

/// How large some tables are together: bytes on the disk, and rows as the planner knows them.
pub(super) async fn size(db: &PgPool, tables: &[&str]) -> Result<(i64, i64)> {
    let tables: Vec<String> = tables.iter().map(|it| (*it).to_owned()).collect();
    let size = sqlx::query!(
        r#"select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint as "bytes!",
                  coalesce(sum(greatest(reltuples, 0)), 0)::bigint as "rows!"
           from pg_class where oid = any(array(select to_regclass(name) from unnest($1::text[]) as name))"#,
        &tables,
    )
    .fetch_one(db)
    .await?;
    Ok((size.bytes, size.rows))
}
