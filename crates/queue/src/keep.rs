//! Keeps this process's leases, and takes back those that others let go.

use std::{sync::Arc, time::Duration};

use sqlx::PgConnection;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Abandoned, Lease, Queue, Work, fence, store};
use crate::error::{Error, Result};

/// A job that ended this many processes in a row does not run again.
const DEADLY: i16 = 3;

/// Beats until told to stop, then leaves. A third of a lease apart: two beats may be lost.
///
/// The token is cancelled when the last step has ended: a draining process still holds its leases.
///
/// After a time without the database every lease in it looks expired, and every owner dead. So a
/// process that had no contact, or has just started, gives the others one lease's time to speak before it takes
/// anything back.
pub async fn keep<W: Work>(queue: Arc<Queue>, work: Arc<W>, host: String, stop: CancellationToken) {
    let every = queue.lease / 3;
    let mut patient_until = Instant::now() + queue.lease;
    loop {
        match beat(&queue, &host).await {
            Ok(()) if Instant::now() >= patient_until => match recover(&queue, &*work).await {
                Ok(0) => (),
                Ok(jobs) => {
                    tracing::warn!(jobs, "took back jobs whose lease had ended");
                    queue.bell.ring();
                }
                Err(error) => tracing::warn!(%error, "could not take back expired leases"),
            },
            Ok(()) => (),
            Err(error) => {
                tracing::warn!(%error, "no heartbeat");
                patient_until = Instant::now() + queue.lease;
            }
        }
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(every) => (),
        }
    }
    if let Err(error) = store::leave(&queue.relaxed, queue.process_id).await {
        tracing::warn!(%error, "could not sign off; the leases will run out");
    }
}

/// Leaves with work under way: its leases end now, and its process did not die. What was marked
/// becomes unknown; a mark that is asked for from here on is refused.
pub async fn let_go(queue: &Queue) -> Result<()> {
    store::leave(&queue.relaxed, queue.process_id).await?;
    store::let_go(&queue.relaxed, queue.process_id).await
}

async fn beat(queue: &Queue, host: &str) -> Result<()> {
    store::beat(&queue.relaxed, queue.process_id, host).await?;
    let (jobs, leases) = queue.held();
    if !jobs.is_empty() {
        store::extend(&queue.relaxed, &jobs, &leases, queue.lease).await?;
    }
    Ok(())
}

/// Takes back expired leases of any process. Answers how many.
pub(super) async fn recover<W: Work>(queue: &Queue, work: &W) -> Result<usize> {
    let mut tx = queue.db.begin().await?;
    let expired = store::expired(&mut tx, W::KIND, queue.lease).await?;
    if !expired.is_empty() {
        take_back(&mut tx, work, &expired).await?;
    }
    tx.commit().await?;
    Ok(expired.len())
}

/// A step that panicked is a death of its job, though its process lives.
pub(super) async fn bury<W: Work>(queue: &Queue, work: &W, lease: &Lease) -> Result<()> {
    let mut tx = queue.db.begin().await?;
    if !fence(&mut tx, &[(lease.job_id, lease.lease_id)]).await?.is_empty() {
        let job = store::Expired { job_id: lease.job_id, deaths: lease.deaths, owner_died: true };
        take_back(&mut tx, work, &[job]).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn take_back<W: Work>(
    conn: &mut PgConnection,
    work: &W,
    jobs: &[store::Expired],
) -> Result<()> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.job_id).collect();
    let deaths: Vec<i16> = jobs.iter().map(|job| job.deaths + i16::from(job.owner_died)).collect();
    let dead: Vec<bool> = deaths.iter().map(|deaths| *deaths >= DEADLY).collect();
    store::take_back(conn, &ids, &deaths, &dead).await?;
    let told: Vec<Abandoned> = ids
        .iter()
        .zip(&dead)
        .map(|(job_id, dead)| Abandoned { job_id: *job_id, dead: *dead })
        .collect();
    work.abandoned(conn, &told).await.map_err(Error::Refused)
}

/// How long a process waits for others to finish before it runs a suspect job anyway later.
pub(super) const DRAIN: Duration = Duration::from_secs(30);
