//! Retention: what grows is kept for a time, and then forgotten, in small batches beside the work.
//!
//! Read in this order: [`Class`] (what a kind of data brings to be forgotten), `run.rs` (one run over
//! all classes), `pace.rs` (how much at a time, and how long to rest), `store.rs` (the SQL of
//! `retention_runs`), `view.rs` (windows, sizes, what would go).
//!
//! # Invariants
//!
//! * What has not settled is never forgotten, nor its content, whatever the window: that is in the
//!   statements of the owners, and not left to a window being long enough.
//! * A row's age is that of its end (a message's settlement), by the database's clock.
//! * Each batch is a transaction of its own that waits for no lock long and skips what is locked.
//! * One run at a time over all processes: the chore's lease. A run that loses it stops. A run whose
//!   process died is told as `interrupted` by the next, and nothing of it needs mending.
//! * A class that fails is told and does not stop the others.

mod pace;
mod routes;
mod run;
mod store;
mod view;

use std::{pin::Pin, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    app::App,
    audit::Who,
    error::{Error, Result},
    metrics::Kept,
};

pub use routes::router;
pub use run::CHORE;
pub use view::{Forgotten, Retained, RetentionRun, RetentionRunState};

/// An answer of a class's owner.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
/// Forgets at most so many rows older than this, the oldest first, from behind a key on. Answers how
/// many, and the key of the last: the next batch begins behind it, for what must stay may be many.
pub type Forget =
    for<'a> fn(&'a mut PgConnection, Duration, Uuid, i64) -> Answer<'a, (u64, Option<Uuid>)>;
/// How many rows are older than this, counted up to a number.
pub type Count = for<'a> fn(&'a mut PgConnection, Duration, i64) -> Answer<'a, i64>;
/// When the oldest row came, whether or not it may be forgotten.
pub type Oldest = for<'a> fn(&'a mut PgConnection) -> Answer<'a, Option<DateTime<Utc>>>;

/// A kind of data that is kept for a time. Its owner brings the statements; `background.rs` has the
/// list.
#[derive(Clone)]
pub struct Class {
    /// Stable, for programs.
    pub name: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    /// The tables whose size it is.
    pub tables: &'static [&'static str],
    /// How long; none for ever.
    pub window: Option<Duration>,
    pub forget: Forget,
    pub count: Count,
    pub oldest: Oldest,
}

/// A handle on the whole of it.
#[derive(Clone)]
pub struct Retention {
    app: App,
    classes: Arc<Vec<Class>>,
    /// Rung when a person asked for a run.
    pub bell: Arc<Notify>,
}

impl Retention {
    pub fn new(app: App, classes: Vec<Class>) -> Self {
        Self { app, classes: Arc::new(classes), bell: Arc::default() }
    }

    /// One run over all classes, under the chore's lease. Ends early, and says so, when told to stop.
    pub async fn run(&self, stop: &CancellationToken) -> Result<()> {
        run::run(&self.app, &self.classes, stop).await
    }

    /// Asks for a run now. It begins at once if this process lives, else with the next.
    pub async fn ask(&self, who: &Who) -> Result<RetentionRun> {
        let asked = store::ask(&self.app.db, who).await?;
        let run = asked.ok_or_else(|| {
            Error::conflict("RETENTION_RUNNING", "a run is under way, or about to begin")
        })?;
        self.bell.notify_one();
        Ok(run)
    }

    /// How large and how old each class is, for the metrics.
    pub async fn kept(&self) -> Result<Vec<Kept>> {
        view::kept(&self.app.db, &self.classes, self.app.now()).await
    }
}
