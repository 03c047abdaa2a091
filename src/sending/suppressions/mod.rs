//! Suppressions: addresses that are not mailed.

mod store;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    app::App,
    audit::{self, Who},
    error::Result,
    events::{self, Event},
};

/// An address that is not mailed.
#[derive(Debug, Clone)]
pub struct Suppression {
    /// The address lower-cased.
    pub lookup_key: String,
    pub reason: String,
    /// Where the knowledge comes from.
    pub source: String,
    pub note: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
}

/// Takes over a suppression that was made elsewhere. Answers whether it is new here.
pub async fn adopt(conn: &mut PgConnection, new: &Suppression) -> Result<bool> {
    store::insert(conn, new).await
}

/// The suppression of an address, by its lookup key.
pub async fn of(app: &App, lookup_key: &str) -> Result<Option<Suppression>> {
    store::of(&app.db, lookup_key).await
}

/// Forgets the suppression of an address that is erased; that is told with the erasure.
pub async fn forget(conn: &mut PgConnection, lookup_key: &str) -> Result<bool> {
    store::delete(conn, lookup_key).await
}

/// Tells that so many were taken over.
pub async fn told(conn: &mut PgConnection, who: &Who, taken: usize) -> Result<()> {
    let id = Uuid::now_v7();
    let data = serde_json::json!({ "suppressions": taken });
    audit::record(conn, who, "suppressions.imported", ("import", id), None, Some(&data)).await?;
    let event = Event { kind: "suppressions.imported", subject: "import", subject_id: id, data };
    events::emit(conn, &[event]).await
}
