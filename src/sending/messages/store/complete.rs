//! Completion: what a step of a job learnt, written all at once or not at all.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgPool, postgres::types::PgInterval};
use uuid::Uuid;

use super::{
    attempts, learn, lock_messages,
    settle::{self, Settled},
};
use crate::{
    error::Result,
    events::{self, Event},
    interval::interval,
    metrics::Metrics,
    queue,
    sending::messages::{Learnt, RecipientState},
};

/// The last words about a recipient, or of a transaction.
#[derive(Debug, Clone, Default)]
pub struct Words {
    pub code: Option<i16>,
    pub enhanced: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
}

/// A transaction that has ended, or a relay that could not be used.
#[derive(Debug, Clone)]
pub struct Ended {
    pub attempt_id: Uuid,
    pub relay_id: Option<Uuid>,
    pub relay_name: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub phase: &'static str,
    pub result: &'static str,
    pub words: Words,
    pub peer: Option<String>,
    pub tls: Option<String>,
    pub recipients: Vec<Said>,
}

/// What a transaction said of one recipient.
#[derive(Debug, Clone)]
pub struct Said {
    pub recipient_id: Uuid,
    pub result: &'static str,
    pub words: Words,
}

/// What becomes of one recipient.
#[derive(Debug, Clone)]
pub struct Change {
    pub recipient_id: Uuid,
    /// The transaction that says so; none for what Postroom itself decides.
    pub attempt_id: Option<Uuid>,
    pub relay_id: Option<Uuid>,
    pub to: RecipientState,
    /// For those that wait: how long.
    pub wait: Duration,
    /// A server spoke of it.
    pub tried: bool,
    /// No relay could be used.
    pub faulted: bool,
    /// The second copy that `resend` allows.
    pub resend: bool,
    pub words: Words,
    pub remote_queue_id: Option<String>,
    /// Learnt together with it.
    pub then: Option<Aftermath>,
}

/// What is learnt of a recipient after it was accepted.
#[derive(Debug, Clone)]
pub struct Aftermath {
    pub to: Learnt,
    pub words: Words,
}

impl Change {
    /// Nothing changes but the words.
    pub fn of(recipient_id: Uuid, to: RecipientState, words: Words) -> Self {
        Self {
            recipient_id,
            attempt_id: None,
            relay_id: None,
            to,
            wait: Duration::ZERO,
            tried: false,
            faulted: false,
            resend: false,
            words,
            remote_queue_id: None,
            then: None,
        }
    }
}

/// What one step learnt.
#[derive(Debug, Clone)]
pub struct Report {
    pub message_id: Uuid,
    pub lease_id: Uuid,
    pub process_id: Uuid,
    pub attempts: Vec<Ended>,
    pub changes: Vec<Change>,
    /// The step goes on: the lease stays.
    pub keep: bool,
}

impl Report {
    fn lease(&self) -> (Uuid, Uuid) {
        (self.message_id, self.lease_id)
    }
}

/// How a report was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Under the lease.
    Whole,
    /// The lease was lost. What this step knew and nobody else could know was written.
    Late,
}

/// Writes reports together, in one transaction.
pub async fn complete(db: &PgPool, metrics: &Metrics, reports: &[Report]) -> Result<Vec<Taken>> {
    let mut tx = db.begin().await?;
    let mine: Vec<_> = reports.iter().map(|it| (it.message_id, it.lease_id)).collect();
    let leased = queue::fence(&mut tx, &mine).await?;
    let late: Vec<Uuid> =
        reports.iter().filter(|it| !leased.contains(&it.lease())).map(|it| it.message_id).collect();
    queue::lock(&mut tx, &late).await?;
    let ids: Vec<Uuid> =
        reports.iter().map(|it| it.message_id).collect::<HashSet<_>>().into_iter().collect();
    let open = lock_messages(&mut tx, &ids).await?;

    let fresh = attempts::write(&mut tx, reports, &open).await?;
    let changed = change(&mut tx, reports, &leased, &fresh).await?;
    events::emit(&mut tx, &told(reports, &changed)).await?;
    let settled = settle::recount(&mut tx, &ids, reports, &changed).await?;
    learn::learn(&mut tx, &learn::of(reports, &changed)).await?;

    // A late truth may say that a recipient is still to be sent: then there is work again.
    settle::queue_again(&mut tx, &late).await?;
    let (kept, released): (Vec<&Report>, Vec<&Report>) =
        reports.iter().filter(|it| leased.contains(&it.lease())).partition(|it| it.keep);
    queue::alive(&mut tx, &kept.iter().map(|it| it.message_id).collect::<Vec<_>>()).await?;
    settle::release(&mut tx, &released.iter().map(|it| it.message_id).collect::<Vec<_>>()).await?;
    tx.commit().await?;
    changed.iter().for_each(|it| metrics.sending.recipient(&it.state));
    Settled::tell(&settled, metrics);
    let taken = |it: &Report| if leased.contains(&it.lease()) { Taken::Whole } else { Taken::Late };
    Ok(reports.iter().map(taken).collect())
}

/// A recipient whose state this completion has changed.
pub struct Changed {
    pub recipient_id: Uuid,
    pub message_id: Uuid,
    pub address: String,
    pub state: String,
}

/// Under the lease a report speaks of recipients that wait, and of those that its own transaction
/// marked. Without it, it can still bring the knowledge that was missing: that the relay accepted
/// settles a recipient that is unknown or waits for a further copy; that its dot was refused, or
/// never sent, counts for those that its own transaction left behind. An attempt speaks once: a
/// report that is written again, because the answer to its commit was lost, changes nothing.
/// Where some copy may have been accepted, "not accepted" leaves the recipient unknown; unless it is
/// the late word on the only copy there was.
async fn change(
    conn: &mut PgConnection,
    reports: &[Report],
    leased: &HashSet<(Uuid, Uuid)>,
    fresh: &HashSet<Uuid>,
) -> Result<Vec<Changed>> {
    let changes: Vec<(&Report, &Change)> = reports
        .iter()
        .flat_map(|report| report.changes.iter().map(move |change| (report, change)))
        .filter(|(report, change)| leased.contains(&report.lease()) || change.is_news())
        .filter(|(_, change)| change.attempt_id.is_none_or(|id| fresh.contains(&id)))
        .collect();
    macro_rules! column {
        ($field:expr) => {
            &changes.iter().map($field).collect::<Vec<_>>()
        };
    }
    let changed = sqlx::query_as!(
        Changed,
        r#"with new as materialized (
             select * from unnest($1::uuid[], $2::boolean[], $3::boolean[], $4::uuid[], $5::uuid[], $6::text[],
                                  $7::interval[], $8::boolean[], $9::boolean[], $10::smallint[], $11::text[],
                                  $12::text[], $13::text[], $14::text[])
                  as new (recipient_id, leased, resend, attempt_id, relay_id, state, wait, tried, faulted, code, enhanced,
                          reason, text, remote_queue_id)
         ), old as materialized (
             select recipient_id, message_id, attempt_id as last_attempt,
                    resends = (state = 'queued')::integer as is_first_copy
             from recipients where recipient_id in (select recipient_id from new)
             order by recipient_id for update
         )
         update recipients set
             state = case when not_accepted and maybe_accepted and not is_only_copy then 'unknown' else new.state end,
             resends = recipients.resends + new.resend::integer,
             maybe_accepted = maybe_accepted and not is_only_copy or new.resend or new.state = 'unknown',
             next_at = case when new.state in ('queued', 'deferred') then least(clock_timestamp() + new.wait, messages.expires_at) end,
             settled_at = case when new.state = 'sent' or (not_accepted and (is_only_copy or not maybe_accepted))
                               then clock_timestamp() end,
             tries = tries + new.tried::integer,
             faults = case when new.faulted then faults + 1 else 0 end,
             attempt_id = coalesce(new.attempt_id, recipients.attempt_id),
             relay_id = coalesce(new.relay_id, recipients.relay_id),
             code = case when said then new.code else recipients.code end,
             enhanced = case when said then new.enhanced else recipients.enhanced end,
             reason = case when said then new.reason else recipients.reason end,
             text = case when said then new.text else recipients.text end,
             remote_queue_id = coalesce(new.remote_queue_id, recipients.remote_queue_id)
         from new join old using (recipient_id) join messages using (message_id),
              lateral (select new.state in ('failed', 'suppressed', 'cancelled', 'expired') as not_accepted,
                             new.reason is not null or new.text is not null as said,
                             not new.leased and is_first_copy and coalesce(last_attempt = new.attempt_id, false)
                                 as is_only_copy) as it
         where recipients.recipient_id = new.recipient_id
           and case when new.leased
                    then recipients.state in ('queued', 'deferred')
                         or (recipients.state = 'sending' and recipients.attempt_id = new.attempt_id)
                    else recipients.state in ('unknown', 'queued', 'deferred') and new.state = 'sent'
                         or recipients.state in ('unknown', 'queued') and recipients.attempt_id = new.attempt_id end
         returning recipients.recipient_id, recipients.message_id, recipients.address, recipients.state"#,
        column!(|(_, it)| it.recipient_id),
        column!(|(report, _)| leased.contains(&report.lease())),
        column!(|(_, it)| it.resend),
        column!(|(_, it)| it.attempt_id) as &[Option<Uuid>],
        column!(|(_, it)| it.relay_id) as &[Option<Uuid>],
        column!(|(_, it)| it.to.as_str().to_owned()),
        column!(|(_, it)| interval(it.wait)) as &[PgInterval],
        column!(|(_, it)| it.tried),
        column!(|(_, it)| it.faulted),
        column!(|(_, it)| it.words.code) as &[Option<i16>],
        column!(|(_, it)| it.words.enhanced.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.reason.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.text.clone()) as &[Option<String>],
        column!(|(_, it)| it.remote_queue_id.clone()) as &[Option<String>],
    )
    .fetch_all(conn)
    .await?;
    Ok(changed)
}

impl Change {
    /// Waiting for a place or a relay is nothing to tell; what a server said of a recipient is.
    fn is_told(&self) -> bool {
        let waits = matches!(self.to, RecipientState::Queued | RecipientState::Deferred);
        !waits || self.tried || self.resend
    }

    /// Knowledge that only the transaction itself can have: a reply to its dot, or the certainty
    /// that the dot was never sent.
    fn is_news(&self) -> bool {
        self.attempt_id.is_some() && self.to != RecipientState::Unknown && !self.resend
    }
}

/// One event for each recipient whose state is another now: the state it has, which is not always
/// the one that was reported.
fn told(reports: &[Report], changed: &[Changed]) -> Vec<Event> {
    let by_id: HashMap<Uuid, &Changed> = changed.iter().map(|it| (it.recipient_id, it)).collect();
    reports
        .iter()
        .flat_map(|report| &report.changes)
        .filter_map(|change| Some((change, *by_id.get(&change.recipient_id)?)))
        .filter(|(change, _)| change.is_told())
        .map(|(change, recipient)| Event {
            kind: match recipient.state.as_str() {
                "unknown" => "recipient.unknown",
                _ if change.resend => "recipient.unknown",
                _ => change.to.event(),
            },
            subject: "message",
            subject_id: recipient.message_id,
            data: json!({
                "address": recipient.address, "code": change.words.code, "enhanced": change.words.enhanced,
                "reason": change.words.reason, "text": change.words.text,
                "action": change.resend.then_some("resend"),
            }),
        })
        .collect()
}
