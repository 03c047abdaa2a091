//! A chore of messages: what has waited too long ends.

use super::store;
use crate::{app::App, error::Result};

/// Ends the waiting of all messages whose time is over.
pub async fn expire(app: &App) -> Result<()> {
    let window = app.config.sending.retry_window;
    while store::expire::expire(&app.workers_db, &app.metrics, window).await? > 0 {}
    Ok(())
}
