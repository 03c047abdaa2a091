//! One step of a message's job.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{Deliver, transaction};
use crate::{
    error::Result,
    queue::{Lease, Step},
    sending::messages::{
        RecipientState,
        store::{
            complete::{Change, Report, Taken, Words},
            load::{self, Due, Head},
        },
    },
};

/// How long a completion that cannot be written is left alone before it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs a step, and writes what it learnt.
pub async fn run(work: &Deliver, lease: &Lease) -> Result<Step> {
    let db = &work.app.workers_db;
    let Some(head) = load::head(db, lease.job_id).await? else {
        return Ok(write(work, report(work, lease, Vec::new(), false)).await);
    };
    let (settled, due) = sift(&head, load::due(db, lease.job_id).await?);
    if !settled.is_empty() && write(work, report(work, lease, settled, true)).await != Step::Done {
        return Ok(Step::Done);
    }
    if due.is_empty() {
        return Ok(write(work, report(work, lease, Vec::new(), false)).await);
    }
    let content = load::content(db, lease.job_id).await?;
    let mut batches: VecDeque<(String, Vec<Due>)> = by_sender(due).into_iter().collect();
    while let Some((sender, recipients)) = batches.pop_front() {
        let batch = transaction::Batch {
            head: &head,
            lease,
            sender: &sender,
            recipients: &recipients,
            content: &content,
        };
        let Some(learnt) = transaction::send(work, batch).await? else {
            // No place on any relay that may be used now: others have come first.
            return Ok(Step::Later(Duration::from_millis(500)));
        };
        let alone = recipients.into_iter().filter(|it| learnt.alone.contains(&it.recipient_id));
        batches.extend(alone.map(|it| (sender.clone(), vec![it])));
        // Each outcome is on disk before the next mark; with the last one the lease goes.
        let report = Report { keep: !batches.is_empty(), ..learnt.report };
        if write(work, report).await != Step::Done {
            break;
        }
    }
    Ok(Step::Done)
}

/// One transaction for each envelope sender.
fn by_sender(due: Vec<Due>) -> BTreeMap<String, Vec<Due>> {
    let mut by_sender: BTreeMap<String, Vec<Due>> = BTreeMap::new();
    for recipient in due {
        by_sender.entry(recipient.envelope_sender.clone()).or_default().push(recipient);
    }
    by_sender
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
