//! The SQL of `paused_scopes`.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Pause, Scope};
use crate::{error::Result, queue::Channel};

struct Row {
    pause_id: Uuid,
    scope: String,
    value: String,
    reason: Option<String>,
    paused_at: DateTime<Utc>,
    paused_by: String,
}

impl Row {
    /// None for a scope that only a newer binary knows.
    fn pause(self) -> Option<Pause> {
        Some(Pause {
            id: self.pause_id,
            scope: Scope::parse(&self.scope)?,
            value: self.value,
            reason: self.reason,
            paused_at: self.paused_at,
            paused_by: self.paused_by,
        })
    }
}

pub(super) async fn all(db: &PgPool) -> Result<Vec<Pause>> {
    let rows = sqlx::query_as!(
        Row,
        "select pause_id, scope, value, reason, paused_at, paused_by from paused_scopes order by paused_at, pause_id"
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().filter_map(Row::pause).collect())
}

pub(super) async fn one(
    conn: &mut PgConnection,
    scope: Scope,
    value: &str,
) -> Result<Option<Pause>> {
    let row = sqlx::query_as!(
        Row,
        "select pause_id, scope, value, reason, paused_at, paused_by from paused_scopes
         where scope = $1 and value = $2",
        scope.as_str(),
        value,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.and_then(Row::pause))
}

/// The new pause; none if the scope is paused already.
pub(super) async fn insert(
    conn: &mut PgConnection,
    scope: Scope,
    value: &str,
    reason: Option<&str>,
    by: &str,
) -> Result<Option<Pause>> {
    let row = sqlx::query_as!(
        Row,
        "insert into paused_scopes (scope, value, reason, paused_by) values ($1, $2, $3, $4)
         on conflict on constraint paused_scopes_pkey do nothing
         returning pause_id, scope, value, reason, paused_at, paused_by",
        scope.as_str(),
        value,
        reason,
        by,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.and_then(Row::pause))
}

pub(super) async fn delete(conn: &mut PgConnection, id: Uuid) -> Result<Option<Pause>> {
    let row = sqlx::query_as!(
        Row,
        "delete from paused_scopes where pause_id = $1
         returning pause_id, scope, value, reason, paused_at, paused_by",
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.and_then(Row::pause))
}

/// Tells every process, when this transaction commits.
pub(super) async fn notify(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("select pg_notify($1, '')", Channel::Relays.as_str()).execute(conn).await?;
    Ok(())
}
