//! What was said, and what becomes of each recipient. Nothing here speaks or waits.

use std::time::Duration;

use uuid::Uuid;

use super::{Deliver, transaction::Batch, trial::Trial};
use crate::{
    on_unknown::OnUnknown,
    sending::{
        messages::{
            RecipientState,
            store::{
                complete::{Change, Report, Words},
                load::Due,
                recover::MOST_RESENDS,
            },
        },
        outcome::{Class, Reason, Scope},
        retry::{Cause, next_wait},
    },
};

/// What the step reports. The last relay asked decides: those before it were left because all
/// recipients could move on.
pub fn judge(work: &Deliver, batch: &Batch<'_>, trials: Vec<Trial>, crowded: bool) -> Learnt {
    let window = work.app.config.sending.retry_window;
    // A relay that was at fault, or had no place, may still take what the last one cannot carry.
    let may_come_back = crowded
        || trials.iter().any(|it| it.verdict().is_some_and(|it| it.class == Class::RelayFault));
    let situation = Situation { window, may_come_back };
    let changes = match trials.last() {
        None => batch.recipients.iter().map(|it| no_relay(batch, it, window)).collect::<Vec<_>>(),
        Some(last) => (0..batch.recipients.len())
            .map(|at| change(work, batch, last, at, &situation))
            .collect(),
    };
    let alone =
        trials.last().map_or_else(Vec::new, |last| last.to_be_asked_alone(batch.recipients));
    let report = Report {
        message_id: batch.lease.job_id,
        lease_id: batch.lease.lease_id,
        process_id: work.app.queue.process_id,
        attempts: trials.iter().map(|it| it.ended(batch.recipients)).collect(),
        changes,
        keep: false,
    };
    Learnt { report, alone }
}

/// What a transaction taught.
pub struct Learnt {
    pub report: Report,
    /// Recipients to be asked again at once, each in a transaction of its own: one refusal after
    /// the dot was given for several.
    pub alone: Vec<Uuid>,
}

struct Situation {
    window: Duration,
    may_come_back: bool,
}

fn no_relay(batch: &Batch<'_>, recipient: &Due, window: Duration) -> Change {
    let words = Words {
        reason: Some("no_relay".to_owned()),
        text: Some("no relay may carry this sender's mail".to_owned()),
        ..Words::default()
    };
    let base = Change::of(recipient.recipient_id, RecipientState::Queued, words);
    faulted(batch, recipient, base, Cause::Relay, None, window)
}

fn change(
    work: &Deliver,
    batch: &Batch<'_>,
    trial: &Trial,
    at: usize,
    situation: &Situation,
) -> Change {
    let window = situation.window;
    let recipient = &batch.recipients[at];
    let Some((verdict, words)) = trial.of(at) else {
        // Accepted at RCPT, and the dot was not sent by our own doing: not counted.
        let wait = Duration::from_secs(1);
        let attempt_id = Some(trial.attempt_id);
        return Change {
            wait,
            attempt_id,
            to: waiting(recipient),
            ..Change::of(recipient.recipient_id, RecipientState::Queued, trial.words())
        };
    };
    let base = Change {
        attempt_id: Some(trial.attempt_id),
        relay_id: Some(trial.relay_id),
        ..Change::of(recipient.recipient_id, RecipientState::Queued, words.clone())
    };
    if trial.alone(at) {
        return Change { to: waiting(recipient), ..base };
    }
    match verdict.class {
        Class::NotForThisRelay if situation.may_come_back => {
            faulted(batch, recipient, base, Cause::Relay, None, window)
        }
        Class::Accepted => Change {
            to: RecipientState::Sent,
            tried: true,
            remote_queue_id: words.text.as_deref().and_then(queue_id),
            ..base
        },
        Class::RecipientPermanent | Class::MessagePermanent | Class::NotForThisRelay => {
            Change { to: RecipientState::Failed, tried: true, ..base }
        }
        Class::Unknown => unknown(work, batch, trial, recipient, base),
        Class::RelayFault => {
            let cause =
                if verdict.reason.is_about_credentials() { Cause::Login } else { Cause::Relay };
            faulted(batch, recipient, base, cause, verdict.wait, window)
        }
        Class::Transient => {
            let cause = match (verdict.reason, verdict.scope) {
                (Reason::Greylisted, _) => Cause::Greylisted,
                (_, Scope::Connection) => Cause::Connection,
                _ => Cause::Transient,
            };
            let tries = u32::try_from(recipient.tries).unwrap_or(0) + 1;
            let wait = next_wait(cause, tries, verdict.wait, rand::random());
            let to =
                if over(batch, window) { RecipientState::Failed } else { RecipientState::Deferred };
            Change { to, wait, tried: true, ..base }
        }
    }
}

/// No relay could be used: nothing was said of the recipient.
fn faulted(
    batch: &Batch<'_>,
    recipient: &Due,
    base: Change,
    cause: Cause,
    named: Option<Duration>,
    window: Duration,
) -> Change {
    let rounds = u32::try_from(recipient.faults).unwrap_or(0) + 1;
    let wait = next_wait(cause, rounds, named, rand::random());
    let to = if over(batch, window) { RecipientState::Failed } else { waiting(recipient) };
    Change { to, wait, faulted: true, ..base }
}

fn unknown(
    work: &Deliver,
    batch: &Batch<'_>,
    trial: &Trial,
    recipient: &Due,
    base: Change,
) -> Change {
    let said = match batch.head.on_unknown.as_deref() {
        Some("resend") => Some(OnUnknown::Resend),
        Some("hold") => Some(OnUnknown::Hold),
        _ => None,
    };
    let policy = said.or(trial.on_unknown).unwrap_or(work.app.config.sending.on_unknown);
    let again = policy == OnUnknown::Resend && recipient.resends < MOST_RESENDS;
    if !again {
        return Change { to: RecipientState::Unknown, ..base };
    }
    let rounds = u32::try_from(recipient.resends).unwrap_or(0) + 1;
    let wait = next_wait(Cause::Connection, rounds, None, rand::random());
    Change { to: RecipientState::Queued, wait, resend: true, ..base }
}

fn waiting(recipient: &Due) -> RecipientState {
    if recipient.state == "deferred" { RecipientState::Deferred } else { RecipientState::Queued }
}

fn over(batch: &Batch<'_>, window: Duration) -> bool {
    batch.head.age > window.as_secs_f64()
}

/// The remote queue's id, where the reply names it: `Ok: queued as 4XyZ…`.
fn queue_id(text: &str) -> Option<String> {
    let behind = text.split_once("queued as ")?.1;
    let id: String =
        behind.chars().take_while(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it)).collect();
    (!id.is_empty() && id.len() <= 128).then_some(id)
}
