//! The timetable: every chore with its period. The jobs run in `serve`.

use std::time::Duration;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    app::App,
    sending::{limits, messages::expire},
    upkeep::keep_doing,
};

const SECONDS: Duration = Duration::from_secs(1);

/// Starts all chores; they end when told to stop.
pub fn chores(app: &App, tasks: &TaskTracker, stop: &CancellationToken) {
    macro_rules! chore {
        ($name:literal, $every:expr, $round:path) => {{
            let (app, stop) = (app.clone(), stop.clone());
            let db = app.workers_db.clone();
            tasks.spawn(async move { keep_doing(db, $name, $every, || $round(&app), stop).await });
        }};
    }
    chore!("messages.expire", 15 * SECONDS, expire::expire);
    chore!("limits.forget", 3600 * SECONDS, limits::forget);
    chore!("messages.forget_keys", 3600 * SECONDS, expire::forget_keys);
}
