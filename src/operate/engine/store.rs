//! What is kept of a restart: who asked for it, and how it ended.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    app::App,
    audit::{self, Who},
    error::Result,
    events::{self, Event},
};

#[derive(Serialize)]
struct Asked<'a> {
    container: &'a str,
}

/// Written before the engine is asked, so that a restart without a trace cannot be.
pub(super) async fn begins(app: &App, who: &Who, id: Uuid, container: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let asked = Asked { container };
    audit::record(&mut tx, who, "container.restart", ("container", id), None, Some(&asked)).await?;
    Ok(tx.commit().await?)
}

/// Tells how it ended: `container.restarted`, or `container.restart_failed` with the reason.
pub(super) async fn ended(
    app: &App,
    id: Uuid,
    container: &str,
    took: u64,
    error: Option<&str>,
) -> Result<()> {
    let kind = if error.is_none() { "container.restarted" } else { "container.restart_failed" };
    let data = json!({ "container": container, "tookMs": took, "error": error });
    let event = Event { kind, subject: "container", subject_id: id, data };
    let mut tx = app.db.begin().await?;
    events::emit(&mut tx, &[event]).await?;
    Ok(tx.commit().await?)
}
