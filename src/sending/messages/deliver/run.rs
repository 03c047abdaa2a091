//! One step of a message's job: due recipients, in groups that go the same way, relay by relay.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    Deliver,
    carrier::Way,
    gate::{Gate, gate},
    group::{Group, Pending},
    turn::{self, Turn},
};
use crate::{
    address::EmailAddress,
    error::{Error, Result},
    queue::{Lease, Step},
    sending::{
        messages::{
            RecipientState,
            store::{
                complete::{Change, Report, Taken, Words},
                load::{self, Due, Head},
            },
        },
        relays::Relay,
    },
};

/// How long a completion that cannot be written is left alone before it is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// A temporary refusal stays with its relay for so many tries; then the next one is asked first.
const TRIES_ON_ONE_RELAY: i32 = 2;

/// Runs a step, and writes what it learnt.
pub async fn run(work: &Deliver, lease: &Lease) -> Result<Step> {
    let db = &work.app.workers_db;
    let Some(head) = load::head(db, lease.job_id).await? else {
        return Ok(write(work, report(work, lease, Vec::new(), false)).await);
    };
    let (mut changes, due) = sift(&head, load::due(db, lease.job_id).await?);
    let Gate { held, due, mut tickets } = gate(work, &head, due).await?;
    changes.extend(held);
    if !changes.is_empty() && write(work, report(work, lease, changes, true)).await != Step::Done {
        return Ok(Step::Done);
    }
    if due.is_empty() {
        return Ok(write(work, report(work, lease, Vec::new(), false)).await);
    }
    let content = load::content(db, lease.job_id).await?;
    let loaded = work.app.now();
    let mut untried = head.untried;
    let mut groups = grouped(&head, &relays(work, &head)?, due);
    while let Some(group) = groups.pop_front() {
        let setting = turn::Setting { work, head: &head, lease, content: &content };
        let Turn { attempts, changes, onward } = turn::take(&setting, group).await;
        groups.extend(onward);
        if let Some(first) = attempts.first().filter(|_| untried) {
            let since = (first.started_at - loaded).to_std().unwrap_or_default();
            work.app.metrics.sending.first_attempt(head.age + since.as_secs_f64());
            untried = false;
        }
        tickets.count(&changes);
        // Each outcome is on disk before the next mark; with the last one the lease goes.
        let keep = !groups.is_empty();
        let learnt = Report { attempts, ..report(work, lease, changes, keep) };
        if write(work, learnt).await != Step::Done {
            break;
        }
    }
    Ok(Step::Done)
}

fn relays(work: &Deliver, head: &Head) -> Result<Vec<Arc<Relay>>> {
    let sender: EmailAddress = head
        .from_address
        .parse()
        .map_err(|_| Error::invalid("from", "the stored sender cannot be read"))?;
    // The random part of its id: who greylists a message wants to see it again at the same relay.
    Ok(work.relays.eligible(&sender, head.message_id.as_u128() as usize))
}

/// Recipients with one way, one envelope sender and one first relay go together.
fn grouped(head: &Head, all: &[Arc<Relay>], due: Vec<Due>) -> VecDeque<Group> {
    let mut groups: BTreeMap<(Way, String, usize), Vec<Pending>> = BTreeMap::new();
    let relays_of = |way| if way == Way::Relays { all } else { &[] };
    for recipient in due {
        let way = Way::of(head, &recipient);
        let turns = recipient.tries / TRIES_ON_ONE_RELAY + recipient.faults;
        let first = usize::try_from(turns).unwrap_or(0) % relays_of(way).len().max(1);
        let key = (way, recipient.envelope_sender.clone(), first);
        groups.entry(key).or_default().push(Pending { due: recipient, fallback: None });
    }
    groups
        .into_iter()
        .map(|((way, sender, first), recipients)| {
            let mut relays: VecDeque<Arc<Relay>> = relays_of(way).iter().cloned().collect();
            relays.rotate_left(first);
            Group { sender, way, recipients, relays, crowded: false, resting: false }
        })
        .collect()
}

/// Those that Postroom itself settles, and those that are to be sent to.
fn sift(head: &Head, due: Vec<Due>) -> (Vec<Change>, Vec<Due>) {
    let mut settled = Vec::new();
    let mut left = Vec::new();
    for it in due {
        let (to, reason, text) = match &it.suppressed {
            _ if head.expired => (
                RecipientState::Expired,
                "expired",
                "its time was over before it could be sent".to_owned(),
            ),
            Some(reason) if !head.suppression_exempt => {
                (RecipientState::Suppressed, "suppressed", reason.clone())
            }
            _ => {
                left.push(it);
                continue;
            }
        };
        let words = Words { reason: Some(reason.to_owned()), text: Some(text), ..Words::default() };
        settled.push(Change::of(it.recipient_id, to, words));
    }
    (settled, left)
}

fn report(work: &Deliver, lease: &Lease, changes: Vec<Change>, keep: bool) -> Report {
    Report {
        message_id: lease.job_id,
        lease_id: lease.lease_id,
        process_id: work.app.queue.process_id,
        attempts: Vec::new(),
        changes,
        keep,
    }
}

/// Writes a report, however long the database is away: what a relay said is known here only.
/// [`Step::Later`] says that the lease was lost meanwhile.
async fn write(work: &Deliver, report: Report) -> Step {
    loop {
        match work.reports.put(report.clone()).await {
            Ok(Taken::Whole) => return Step::Done,
            Ok(Taken::Late) => return Step::Later(Duration::ZERO),
            Err(error) => {
                tracing::warn!(message.id = %report.message_id, %error, "an outcome waits for the database");
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
