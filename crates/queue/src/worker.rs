//! Claims as much as can run now, and runs it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Lane, Lease, Queue, Step, Work, due, keep, store};
use crate::error::Result;

/// Finished jobs are gathered for this long before the next claim, so that a claim takes several.
const GATHER: Duration = Duration::from_millis(2);
/// The shortest sleep: what becomes due within it is claimed together.
const BLINK: Duration = Duration::from_millis(2);

/// Works on one kind until told to stop; then takes nothing new, and waits for what runs.
/// Whoever cuts that wait short loses nothing: the leases run out.
pub async fn work<W: Work>(queue: Arc<Queue>, work: Arc<W>, stop: CancellationToken) {
    let mut crew = Crew {
        queue,
        work,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        alone: Alone::default(),
    };
    loop {
        if stop.is_cancelled() {
            break;
        }
        let next = crew.claim().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not claim work");
            None
        });
        crew.queue.has_looked();
        let poll = crew.queue.poll;
        let sleep = next.map_or(poll, |next| next.max(BLINK).min(poll));
        tokio::select! {
            () = stop.cancelled() => break,
            () = crew.queue.bell.rung() => (),
            () = tokio::time::sleep(sleep) => (),
            Some(ended) = crew.tasks.join_next_with_id() => {
                crew.ended(ended).await;
                tokio::time::sleep(GATHER).await;
                while let Some(ended) = crew.tasks.try_join_next_with_id() {
                    crew.ended(ended).await;
                }
            }
        }
    }
    while let Some(ended) = crew.tasks.join_next_with_id().await {
        crew.ended(ended).await;
    }
}

struct Crew<W> {
    queue: Arc<Queue>,
    work: Arc<W>,
    tasks: JoinSet<(Lease, Step)>,
    running: HashMap<tokio::task::Id, Lease>,
    alone: Alone,
}

/// Makes room for a job that must run alone, without waiting for ever.
#[derive(Default)]
struct Alone {
    draining_until: Option<Instant>,
    rest_until: Option<Instant>,
}

impl<W: Work> Crew<W> {
    /// Claims what can run now. Answers how long until something else is due.
    async fn claim(&mut self) -> Result<Option<Duration>> {
        if self.runs_a_suspect() || self.makes_room().await? {
            return Ok(None);
        }
        let due::Due { lanes, next } = due::look(&self.queue.relaxed, W::KIND).await?;
        if lanes.is_empty() {
            return Ok(next);
        }
        let lanes = self.lanes(lanes);
        let free = self.work.capacity(&lanes);
        let (lanes, free): (Vec<String>, Vec<i64>) = lanes
            .into_iter()
            .zip(free)
            .filter(|(lane, free)| lane.due && *free > 0)
            .map(|(lane, free)| (lane.name, i64::try_from(free).unwrap_or(i64::MAX)))
            .unzip();
        if lanes.is_empty() {
            return Ok(next);
        }
        let queue = &self.queue;
        let begun = Instant::now();
        let leases =
            store::claim(&queue.relaxed, W::KIND, queue.process_id, queue.lease, &lanes, &free)
                .await?;
        (queue.claimed)(leases.len(), begun.elapsed());
        leases.into_iter().for_each(|lease| self.start(lease));
        Ok(next)
    }

    /// True while nothing else may be claimed, because a suspect job is due and needs the house
    /// for itself. Gives up after [`keep::DRAIN`]: others must not wait for one that never ends.
    async fn makes_room(&mut self) -> Result<bool> {
        let now = Instant::now();
        if self.alone.rest_until.is_some_and(|until| now < until) {
            return Ok(false);
        }
        if !store::suspect_is_due(&self.queue.relaxed, W::KIND).await? {
            self.alone = Alone::default();
            return Ok(false);
        }
        if self.running.is_empty() {
            self.alone = Alone::default();
            let queue = &self.queue;
            let lease =
                store::claim_suspect(&queue.relaxed, W::KIND, queue.process_id, queue.lease)
                    .await?;
            let claimed = lease.is_some();
            lease.into_iter().for_each(|lease| self.start(lease));
            return Ok(claimed);
        }
        let until = *self.alone.draining_until.get_or_insert(now + keep::DRAIN);
        if now >= until {
            self.alone = Alone { draining_until: None, rest_until: Some(now + keep::DRAIN * 2) };
        }
        Ok(now < until)
    }

    fn runs_a_suspect(&self) -> bool {
        self.running.values().any(|lease| lease.deaths >= 2)
    }

    /// The lanes with due work, and those with work under way.
    fn lanes(&self, due: Vec<String>) -> Vec<Lane> {
        let mut running: HashMap<&str, usize> = HashMap::new();
        for lease in self.running.values() {
            *running.entry(&lease.lane).or_default() += 1;
        }
        let mut lanes: Vec<Lane> = due
            .into_iter()
            .map(|name| Lane { running: running.remove(&*name).unwrap_or(0), name, due: true })
            .collect();
        let others = running.into_iter();
        lanes.extend(others.map(|(name, running)| Lane {
            name: name.to_owned(),
            running,
            due: false,
        }));
        lanes
    }

    fn start(&mut self, lease: Lease) {
        self.queue.hold(&lease);
        let (work, job) = (self.work.clone(), lease.clone());
        let task = self.tasks.spawn(async move {
            let step = work.run(job.clone()).await;
            (job, step)
        });
        self.running.insert(task.id(), lease);
    }

    async fn ended(
        &mut self,
        ended: std::result::Result<(tokio::task::Id, (Lease, Step)), tokio::task::JoinError>,
    ) {
        let (id, step) = match ended {
            Ok((id, (_, step))) => (id, Some(step)),
            Err(panic) => (panic.id(), None),
        };
        let Some(lease) = self.running.remove(&id) else { return };
        let written = match step {
            Some(Step::Done) => Ok(()),
            Some(Step::Later(wait)) => store::hand_back(&self.queue.relaxed, &lease, wait).await,
            None => {
                tracing::error!(job.id = %lease.job_id, "a step panicked");
                keep::bury(&self.queue, &*self.work, &lease).await
            }
        };
        if let Err(error) = written {
            tracing::warn!(job.id = %lease.job_id, %error, "could not hand a job back; its lease will run out");
        }
        self.queue.release(&lease);
    }
}
