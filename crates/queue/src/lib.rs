//! Durable work: a row in `jobs`, written in the caller's transaction, run under a lease.
//!
//! Read in this order: [`Work`] (what a kind of work brings), `store.rs` (the SQL of `jobs`),
//! `due.rs` (what is due, and what is next), `worker.rs` (claim and run), `keep.rs` (heartbeat and recovery), `bell.rs` (who wakes whom),
//! `grouped.rs` (many small writes, one commit).
//!
//! # Invariants
//!
//! * Due times and leases compare with the database's clock, never with this process's.
//! * Whoever writes about a job first locks its row by [`fence`]: no lease, no write. A fence is a
//!   pair of job and lease: a process can hold a lost and a fresh lease of one job at a time.
//! * Locks are taken in one order everywhere: `jobs` by id, then the owner's rows by id.
//! * A claim takes from each lane no more than the kind says it can run now. There is no other
//!   bound, so a neighbour that never answers fills its own lanes only.
//! * A crash costs a lease. A job whose process died with it twice runs alone; a third death
//!   makes it `dead`, and its owner is told in the same transaction.
//! * A process sleeps until the next job is due, and never longer than a poll: work for a known
//!   time begins then, whichever process put it there and whichever still runs.
//! * A job whose kind this binary does not know is left alone: a newer one put it there.

mod bell;
mod due;
mod error;
mod grouped;
pub mod interval;
mod keep;
mod store;
mod worker;

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

pub use bell::{Bell, Channel, listen};
pub use error::{Error, Refusal, Result};
pub use grouped::Grouped;
pub use keep::{keep, let_go};
pub use store::{
    NewJob, again, alive, end, end_idle, enqueue, fence, hasten, lock, postpone, renew,
};
pub use worker::work;

/// Lane order within one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    High = 0,
    Normal = 1,
    Bulk = 2,
}

impl From<i16> for Priority {
    /// From the number kept in a row, which a constraint holds between 0 and 2.
    fn from(number: i16) -> Self {
        match number {
            ..=0 => Self::High,
            1 => Self::Normal,
            2.. => Self::Bulk,
        }
    }
}

/// A job this process may work on, until `leased_until` or as long as its heartbeat goes on.
#[derive(Debug, Clone)]
pub struct Lease {
    pub job_id: Uuid,
    pub lease_id: Uuid,
    pub lane: String,
    /// How often in a row a process died while it held this job.
    pub deaths: i16,
}

/// A job whose lease ended with its process, as told to [`Work::abandoned`].
#[derive(Debug, Clone)]
pub struct Abandoned {
    pub job_id: Uuid,
    /// The job will not run again: its process died with it three times.
    pub dead: bool,
}

/// How a step of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The kind has written the outcome under the fence, or found its lease lost.
    Done,
    /// Not now, and not counted: limits, pauses, a database that is away.
    Later(Duration),
}

/// A lane, and how many of its jobs this process runs now.
#[derive(Debug, Clone)]
pub struct Lane {
    pub name: String,
    pub running: usize,
    /// It has work that is due. Lanes without are named too if they have work under way.
    pub due: bool,
}

/// One kind of work.
pub trait Work: Send + Sync + 'static {
    /// Stored in every row: rename only with a migration.
    const KIND: &'static str;

    /// For each lane, how many more jobs may be claimed from it now. Zero for a lane that is
    /// paused, whose neighbours are broken, or whose places are all taken.
    fn capacity(&self, lanes: &[Lane]) -> Vec<usize>;

    /// Runs one step. It writes its own outcome, in one transaction that begins with [`fence`].
    fn run(&self, lease: Lease) -> impl Future<Output = Step> + Send;

    /// What the end of these leases means for their owner's rows. Runs in the transaction that
    /// takes the leases back; the job rows are locked, in order of their ids.
    fn abandoned(
        &self,
        conn: &mut PgConnection,
        jobs: &[Abandoned],
    ) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// Who is told of each claim: how many jobs, and how long it took.
pub type Claimed = Box<dyn Fn(usize, Duration) + Send + Sync>;

/// The queue as this process sees it.
pub struct Queue {
    pub process_id: Uuid,
    /// How long a lease lasts without a heartbeat.
    pub lease: Duration,
    /// How often to look, whatever the bell says.
    pub poll: Duration,
    /// Recovery: commits are on disk before they are answered.
    db: PgPool,
    /// Claims and heartbeats: `synchronous_commit = off`. Losing one costs nothing.
    relaxed: PgPool,
    pub bell: Bell,
    /// The leases this process works on: lease → job. The heartbeat keeps these.
    held: Mutex<HashMap<Uuid, Uuid>>,
    claimed: Claimed,
    /// When the worker last looked for work, whatever came of it.
    looked: Mutex<Instant>,
}

impl Queue {
    pub fn new(
        (db, relaxed): (PgPool, PgPool),
        lease: Duration,
        poll: Duration,
        claimed: Claimed,
    ) -> Self {
        Self {
            process_id: Uuid::now_v7(),
            lease,
            poll,
            bell: Bell::new(relaxed.clone()),
            db,
            relaxed,
            held: Mutex::default(),
            claimed,
            looked: Mutex::new(Instant::now()),
        }
    }

    /// The pool of claims and heartbeats, for who counts its connections.
    pub fn relaxed(&self) -> &PgPool {
        &self.relaxed
    }

    /// How long ago the worker of this process last looked for work: more than some seconds beyond
    /// [`poll`](Self::poll), and it hangs.
    pub fn since_looked(&self) -> Duration {
        self.looked.lock().expect("no holder panics").elapsed()
    }

    fn has_looked(&self) {
        *self.looked.lock().expect("no holder panics") = Instant::now();
    }

    fn hold(&self, lease: &Lease) {
        self.held.lock().expect("no holder panics").insert(lease.lease_id, lease.job_id);
    }

    fn release(&self, lease: &Lease) {
        self.held.lock().expect("no holder panics").remove(&lease.lease_id);
    }

    fn held(&self) -> (Vec<Uuid>, Vec<Uuid>) {
        let held = self.held.lock().expect("no holder panics");
        held.iter().map(|(lease, job)| (*job, *lease)).unzip()
    }
}
