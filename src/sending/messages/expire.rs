//! Two chores of messages: what has waited too long ends, and old idempotency keys go.

use super::store;
use crate::{app::App, error::Result};

/// Ends the waiting of all messages whose time is over.
pub async fn expire(app: &App) -> Result<()> {
    let window = app.config.sending.retry_window;
    while store::expire::expire(&app.workers_db, &app.metrics, window).await? > 0 {}
    Ok(())
}

/// Forgets idempotency keys whose day is over.
pub async fn forget_keys(app: &App) -> Result<()> {
    store::expire::forget_keys(&app.workers_db).await
}
