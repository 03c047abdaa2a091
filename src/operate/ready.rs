//! `/health/ready`: whether this Postroom should be given work, and if not, why.
//!
//! Whatever hangs, the answer comes: each look has a deadline of its own. Age alone takes nobody
//! out of service: behind one slow relay the oldest job is old while all others go out, and the
//! API must go on taking messages. It is told as a warning, and it is for the alerts; who wants
//! it otherwise says so with `POSTROOM_READY_OLDEST_JOB`.

use std::time::Duration;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::store;
use crate::{
    app::App,
    database::{self, Schema},
};

/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A job that has been due for longer is worth a warning.
const OLD: f64 = 300.0;
/// A worker that has not looked for work for so long hangs: no statement may run longer.
const HANGS: Duration = Duration::from_secs(60);

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(ready)).with_state(app)
}

#[derive(Serialize, ToSchema)]
struct Ready {
    /// `ready` or `unready`.
    status: &'static str,
    checks: Vec<Check>,
}

/// One look at one thing.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct Check {
    /// `database`, `migrations`, `queue` or `workers`.
    name: &'static str,
    state: Finding,
    reason: String,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Finding {
    Ok,
    /// Not as it should be, but no reason to be given no work.
    Warn,
    Fail,
    /// Not looked at, because of another failure.
    Skipped,
}

type Found = (Finding, String);

/// Whether this Postroom should be given work: each check with its state and reason. 503 if one failed.
#[utoipa::path(get, path = "/health/ready", tag = "operation", security(()),
    responses((status = 200, body = Ready), (status = 503, body = Ready)))]
async fn ready(State(app): State<App>) -> (StatusCode, Json<Ready>) {
    let checks = look(&app).await;
    let failed = checks.iter().any(|it| it.state == Finding::Fail);
    let (code, status) = match failed {
        true => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
        false => (StatusCode::OK, "ready"),
    };
    (code, Json(Ready { status, checks }))
}

async fn look(app: &App) -> Vec<Check> {
    let database = within(async {
        sqlx::query_scalar!(r#"select 1 as "one!""#).fetch_one(&app.db).await?;
        Ok((Finding::Ok, "it answers".to_owned()))
    })
    .await;
    let skipped = || (Finding::Skipped, "the database does not answer".to_owned());
    let (migrations, queue, workers) = if database.0 == Finding::Ok {
        tokio::join!(
            within(async { Ok(migrations(&database::schema(&app.db).await?)) }),
            within(async {
                let backlog = store::backlog(&app.db).await?;
                Ok(queue(backlog.oldest_seconds, app.config.ready.oldest_job))
            }),
            within(async {
                let lease = app.queue.lease.as_secs_f64();
                let (mine, others) =
                    store::heartbeats(&app.db, app.queue.process_id, lease).await?;
                Ok(workers(app.queue.since_looked(), mine, others, lease))
            }),
        )
    } else {
        (skipped(), skipped(), skipped())
    };
    let named = [
        ("database", database),
        ("migrations", migrations),
        ("queue", queue),
        ("workers", workers),
    ];
    named.into_iter().map(|(name, (state, reason))| Check { name, state, reason }).collect()
}

/// What was found, or that it could not be found out in time.
async fn within(look: impl Future<Output = anyhow::Result<Found>>) -> Found {
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::warn!(%error, "a check of the readiness failed");
            (Finding::Fail, "the database refuses, or cannot be reached".to_owned())
        }
        Err(_) => {
            (Finding::Fail, format!("the database does not answer within {} s", PATIENCE.as_secs()))
        }
    }
}

fn migrations(schema: &Schema) -> Found {
    if let Some(version) = schema.newer.last() {
        return (Finding::Fail, format!("the schema is newer than this binary: it has {version}"));
    }
    if let Some(version) = schema.broken.first() {
        return (Finding::Fail, format!("the migration {version} is unfinished, or another one"));
    }
    match schema.missing.as_slice() {
        [] => (Finding::Ok, format!("{} applied", schema.applied)),
        [first, ..] => (Finding::Fail, format!("not applied: {first} and what follows")),
    }
}

fn queue(oldest: f64, most: Option<Duration>) -> Found {
    let said = format!("the longest-waiting due job has been due for {oldest:.0} s");
    if most.is_some_and(|most| oldest > most.as_secs_f64()) {
        (Finding::Fail, said)
    } else if oldest > OLD {
        (Finding::Warn, said)
    } else {
        (Finding::Ok, said)
    }
}

fn workers(since_looked: Duration, mine: Option<f64>, others: i64, lease: f64) -> Found {
    if since_looked > HANGS {
        let seconds = since_looked.as_secs();
        return (Finding::Fail, format!("the worker has not looked for work for {seconds} s"));
    }
    match mine {
        None => (Finding::Fail, "this process has not given its first heartbeat yet".to_owned()),
        Some(age) if age > lease => {
            (Finding::Fail, format!("the last heartbeat of this process is {age:.0} s old"))
        }
        Some(_) => (Finding::Ok, format!("this process works, and {others} others")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_alone_warns_and_fails_only_where_it_was_asked_for() {
        assert_eq!(queue(10.0, None).0, Finding::Ok);
        assert_eq!(queue(3_600.0, None).0, Finding::Warn);
        assert_eq!(queue(10.0, Some(Duration::from_secs(5))).0, Finding::Fail);
    }

    #[test]
    fn a_worker_that_hangs_or_is_silent_fails() {
        let now = Duration::from_secs(1);
        assert_eq!(workers(now, Some(2.0), 0, 60.0).0, Finding::Ok);
        assert_eq!(workers(now, None, 3, 60.0).0, Finding::Fail);
        assert_eq!(workers(now, Some(61.0), 3, 60.0).0, Finding::Fail);
        assert_eq!(workers(HANGS * 2, Some(2.0), 3, 60.0).0, Finding::Fail);
    }

    #[test]
    fn a_schema_must_be_the_one_that_this_binary_knows() {
        let schema = Schema { applied: 3, ..Schema::default() };
        assert_eq!(migrations(&schema).0, Finding::Ok);
        for wrong in [
            Schema { newer: vec![9], ..schema.clone() },
            Schema { missing: vec![9], ..schema.clone() },
            Schema { broken: vec![9], ..schema.clone() },
        ] {
            assert_eq!(migrations(&wrong).0, Finding::Fail);
        }
    }
}
