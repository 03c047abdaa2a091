//! One run over all classes.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Class,
    pace::Pace,
    store,
    view::{Forgotten, RetentionRunState},
};
use crate::{
    app::App,
    error::{Error, Result},
};

/// The chore's name: its lease is what makes a run the only one.
pub const CHORE: &str = "retention";
/// So often in a row may a batch meet locks or a deadlock before its class gives up for this run.
const PATIENCE: u32 = 5;
/// How often a long run says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Forgets what is over, class by class.
pub(super) async fn run(app: &App, classes: &[Class], stop: &CancellationToken) -> Result<()> {
    let db = &app.workers_db;
    let mut log = Log { db, id: store::begin(db).await?, ended: Vec::new(), told: Instant::now() };
    for class in classes {
        let Some(window) = class.window else { continue };
        let (deleted, ended) = forget(app, class, window, stop, &mut log).await;
        if let Err(error) = &ended {
            tracing::warn!(class = class.name, %error, "what is over could not be forgotten");
        }
        let error = ended.err().map(|error| said(&error));
        log.ended.push(Forgotten { class: class.name.to_owned(), deleted, error });
        if stop.is_cancelled() {
            return store::end(db, log.id, RetentionRunState::Stopped, &log.ended).await;
        }
    }
    let failed = log.ended.iter().find(|it| it.error.is_some());
    let state = if failed.is_none() { RetentionRunState::Done } else { RetentionRunState::Failed };
    store::end(db, log.id, state, &log.ended).await?;
    let Some(Forgotten { class, error: Some(error), .. }) = failed else { return Ok(()) };
    let source = anyhow::anyhow!("retention of {class} failed: {error}");
    Err(Error::Unavailable { neighbour: "the database", source })
}

/// What a run has done so far.
struct Log<'a> {
    db: &'a PgPool,
    id: Uuid,
    ended: Vec<Forgotten>,
    /// When it was last written down.
    told: Instant,
}

impl Log<'_> {
    /// Writes down now and then how far it is.
    async fn so_far(&mut self, class: &Class, deleted: u64) -> Result<()> {
        if self.told.elapsed() < TOLD_EVERY {
            return Ok(());
        }
        self.told = Instant::now();
        let now = Forgotten { class: class.name.to_owned(), deleted, error: None };
        store::progress(self.db, self.id, &[&self.ended[..], &[now]].concat()).await
    }
}

/// Batch after batch until nothing of the class is over. Answers how much went, also when it failed.
async fn forget(
    app: &App,
    class: &Class,
    window: Duration,
    stop: &CancellationToken,
    log: &mut Log<'_>,
) -> (u64, Result<()>) {
    let (mut pace, mut behind, mut deleted, mut failures) = (Pace::new(), Uuid::nil(), 0, 0);
    while !stop.is_cancelled() {
        let (size, begun) = (pace.size(), Instant::now());
        let rest = match store::batch(&app.workers_db, class, window, behind, size).await {
            Ok((rows, last)) => {
                failures = 0;
                deleted += rows;
                app.metrics.forgotten(class.name, rows);
                behind = last.unwrap_or(behind);
                if rows < size.unsigned_abs() {
                    return (deleted, Ok(()));
                }
                pace.after(rows, begun.elapsed())
            }
            Err(error) if store::may_pass(&error) && failures < PATIENCE => {
                failures += 1;
                pace.failed()
            }
            Err(error) => return (deleted, Err(error)),
        };
        if let Err(error) = log.so_far(class, deleted).await {
            return (deleted, Err(error));
        }
        tokio::select! {
            () = stop.cancelled() => (),
            () = tokio::time::sleep(rest) => (),
        }
    }
    (deleted, Ok(()))
}

/// With the database's own words: the operator must see that it is a full disk.
fn said(error: &Error) -> String {
    match error {
        Error::Database(source) => source.to_string(),
        other => other.to_string(),
    }
}
