//! What is shown of retention: windows, sizes, ages, what would go, and what went.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, types::Json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Class, store};
use crate::{error::Result, metrics::Kept};

/// What would go is counted up to here, and so long.
const COUNTED: i64 = 100_000;
const PATIENCE: Duration = Duration::from_secs(2);

/// A class of data: how long it is kept, how much there is, and what a run would forget now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retained {
    /// `content`, `messages`, `idempotency`, `events`, `sandbox`, `audit`.
    pub class: &'static str,
    pub description: &'static str,
    /// Seconds that it is kept after its end; null for ever.
    pub window: Option<u64>,
    /// When the oldest of it came. What has not ended stays, however old.
    pub oldest: Option<DateTime<Utc>>,
    /// Bytes on the disk, indexes too.
    pub bytes: i64,
    /// Rows, as the database estimates them.
    pub rows: i64,
    /// How much a run would forget now; null if that could not be counted in time.
    pub would_delete: Option<i64>,
    /// Whether there is more of it than was counted.
    pub would_delete_more: bool,
}

/// A run over all classes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionRun {
    pub id: Uuid,
    /// `scheduled` or `manual`.
    pub trigger: String,
    /// Who asked for it.
    pub asked_by: Option<String>,
    pub state: RetentionRunState,
    pub asked_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// What became of each class so far.
    #[schema(value_type = Vec<Forgotten>)]
    pub classes: Json<Vec<Forgotten>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, sqlx::Type, ToSchema)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum RetentionRunState {
    /// It was asked for, and begins in a moment.
    Waiting,
    Running,
    Done,
    /// Some class failed; the others are done.
    Failed,
    /// Its process was told to stop; the next run goes on.
    Stopped,
    /// Its process died; the next run goes on.
    Interrupted,
}

impl RetentionRunState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What became of one class in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Forgotten {
    pub class: String,
    /// Messages for `content` and `messages`, rows for all others.
    pub deleted: u64,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

pub(super) async fn retained(db: &PgPool, class: &Class) -> Result<Retained> {
    let (bytes, rows) = store::size(db, class.tables).await?;
    let mut conn = db.acquire().await?;
    let oldest = (class.oldest)(&mut conn).await?;
    let would_delete = match class.window {
        None => Some(0),
        Some(window) => {
            match tokio::time::timeout(PATIENCE, (class.count)(&mut conn, window, COUNTED + 1))
                .await
            {
                Ok(counted) => Some(counted?),
                Err(_) => {
                    // It still has a question under way.
                    conn.close_on_drop();
                    None
                }
            }
        }
    };
    Ok(Retained {
        class: class.name,
        description: class.what,
        window: class.window.map(|it| it.as_secs()),
        oldest,
        bytes,
        rows,
        would_delete: would_delete.map(|it| it.min(COUNTED)),
        would_delete_more: would_delete.is_none_or(|it| it > COUNTED),
    })
}

pub(super) async fn kept(db: &PgPool, classes: &[Class], now: DateTime<Utc>) -> Result<Vec<Kept>> {
    let mut all = Vec::with_capacity(classes.len());
    for class in classes {
        let (bytes, rows) = store::size(db, class.tables).await?;
        let oldest = (class.oldest)(&mut *db.acquire().await?).await?;
        let oldest_seconds = oldest.map(|at| (now - at).as_seconds_f64());
        all.push(Kept { class: class.name, window: class.window, bytes, rows, oldest_seconds });
    }
    Ok(all)
}
