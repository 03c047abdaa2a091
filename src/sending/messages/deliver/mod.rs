//! Delivering: the job of a message.
//!
//! `run.rs` is one step: due recipients, suppression and expiry, pauses and limits (`gate.rs`), then
//! groups that go the same way.
//! `turn.rs` asks the next relay for one group (`transaction.rs` speaks; `carrier.rs` is
//! who else may be asked), until each recipient is
//! settled, waits, or no relay is left. `trial.rs` is what one relay said, and `judge.rs` what
//! becomes of each recipient: both pure.

mod carrier;
mod gate;
mod group;
mod judge;
mod run;
mod transaction;
mod trial;
mod turn;

use std::sync::Arc;

use sqlx::PgConnection;
use tokio_util::task::TaskTracker;

use super::{
    KIND, Mode,
    store::{
        complete::{self, Report, Taken},
        mark::{self, Mark},
        recover,
        settle::Settled,
    },
    wait::Outcomes,
};
use crate::{
    app::App,
    error::Result,
    queue::{Abandoned, Grouped, Lane, Lease, Refusal, Step, Work},
    sending::{pauses, relays::Book},
};

/// So many messages that need no relay are worked on at once, in each of their lanes.
const OWN_LANE: usize = 8;

/// The work of kind `send`.
pub struct Deliver {
    pub app: App,
    pub relays: Arc<Book>,
    pub marks: Grouped<Mark, bool>,
    pub reports: Grouped<Report, Taken>,
    /// Who waits for what is written here.
    pub outcomes: Arc<Outcomes>,
}

impl Deliver {
    pub fn start(app: App, relays: Arc<Book>, tasks: &TaskTracker) -> Self {
        let (db, lease) = (app.workers_db.clone(), app.config.queue.lease);
        let marks = Grouped::start(
            tasks,
            200,
            usize::MAX,
            |_| 0,
            |it: &Mark| Some(it.message_id),
            move |marks: Arc<Vec<Mark>>| {
                let db = db.clone();
                async move { mark::mark(&db, &marks, lease).await }
            },
        );
        let (db, metrics) = (app.workers_db.clone(), app.metrics.clone());
        let outcomes = Arc::new(Outcomes::default());
        let told = outcomes.clone();
        let reports = Grouped::start(
            tasks,
            200,
            usize::MAX,
            |_| 0,
            |it: &Report| Some(it.message_id),
            move |reports: Arc<Vec<Report>>| {
                let (db, metrics, told) = (db.clone(), metrics.clone(), told.clone());
                async move {
                    let taken = complete::complete(&db, &metrics, &reports).await?;
                    told.tell(reports.iter().map(|it| it.message_id));
                    Result::<_>::Ok(taken)
                }
            },
        );
        Self { app, relays, marks, reports, outcomes }
    }
}

impl Work for Deliver {
    const KIND: &'static str = KIND;

    fn capacity(&self, lanes: &[Lane]) -> Vec<usize> {
        // What needs no relay waits for none; a pause of all sending holds it too.
        let own_lane = if self.relays.pauses.holds(pauses::Scope::All, "") { 0 } else { OWN_LANE };
        let is_own = |lane: &&Lane| Mode::is_own_lane(&lane.name);
        let relayed: Vec<Lane> = lanes.iter().filter(|it| !is_own(it)).cloned().collect();
        let mut relayed = self.relays.capacity(&relayed).into_iter();
        let share = |lane| match is_own(&lane) {
            true => own_lane.saturating_sub(lane.running),
            false => relayed.next().unwrap_or(0),
        };
        lanes.iter().map(share).collect()
    }

    async fn run(&self, lease: Lease) -> Step {
        match run::run(self, &lease).await {
            Ok(step) => step,
            Err(error) => {
                tracing::warn!(message.id = %lease.job_id, %error, "a step could not be finished");
                Step::Later(std::time::Duration::from_secs(5))
            }
        }
    }

    async fn abandoned(&self, conn: &mut PgConnection, jobs: &[Abandoned]) -> Result<(), Refusal> {
        let (told, settled) =
            recover::abandoned(conn, jobs, self.app.config.sending.on_unknown).await?;
        // Not committed yet: if that fails, it is done, and counted, again.
        told.iter().for_each(|state| self.app.metrics.sending.recipient(state));
        Settled::tell(&settled, &self.app.metrics);
        Ok(())
    }
}
