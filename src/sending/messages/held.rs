//! Recipients that wait for an operator or for a limit, and not for a server.

use super::store;
use crate::{app::App, error::Result};

/// Why such a recipient waits: its `reason`.
pub const PAUSED: &str = "paused";
/// See [`PAUSED`].
pub const LIMITED: &str = "limited";

/// Makes all of them due: a pause or a limit was changed.
pub async fn wake(app: &App) -> Result<()> {
    let mut last = None;
    while let Some(id) = store::held::wake(&app.workers_db, last).await? {
        last = Some(id);
    }
    app.queue.bell.ring();
    Ok(())
}
