//! For whoever runs Postroom: is it well, and how much is there to do.

pub mod health;
pub mod metrics;
pub mod probe;

use serde::Serialize;
use sqlx::PgPool;
use utoipa::ToSchema;

use crate::error::Result;

/// The work that is left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backlog {
    /// Jobs with work left, waiting or running.
    pub depth: i64,
    /// How long the longest-waiting due job has been due.
    pub oldest_seconds: f64,
}

async fn backlog(db: &PgPool) -> Result<Backlog> {
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
