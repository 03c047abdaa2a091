//! What was said, and what becomes of each recipient. Nothing here speaks or waits.

use std::time::Duration;

use super::{group::Pending, trial::Trial};
use crate::{
    on_unknown::OnUnknown,
    sending::{
        messages::{
            RecipientState,
            store::{
                complete::{Change, Words},
                load::Due,
                recover::MOST_RESENDS,
            },
        },
        outcome::{Class, Reason, Scope, Verdict},
        retry::{Cause, next_wait},
    },
};

/// A relay had no place: others have come first, and are soon done.
const SOON: Duration = Duration::from_millis(500);

/// What judging needs to know besides the words.
pub struct Setting {
    /// The retry window is over.
    pub is_over: bool,
    /// The message's own policy, or its key's.
    pub on_unknown: Option<OnUnknown>,
    pub instance: OnUnknown,
    /// No further relay can be asked in this step …
    pub is_last: bool,
    /// … though one had no place, or rests.
    pub crowded: bool,
    pub resting: bool,
}

/// What follows for one recipient.
pub enum Decision {
    Settled(Change),
    /// To the next relay; with what becomes of it if none settles it.
    Moves(Option<Change>),
    /// It is asked again at once, alone: one refusal after the dot was given for several.
    Alone(Change),
}

/// Judges what one relay said of one recipient.
pub fn decide(trial: &Trial, at: usize, pending: &Pending, setting: &Setting) -> Decision {
    let recipient = &pending.due;
    let Some((verdict, words)) = trial.of(at) else {
        // Accepted at RCPT, and the dot was not sent by our own doing: not counted.
        let wait = Duration::from_secs(1);
        return Decision::Settled(Change { wait, ..base(trial, recipient, trial.words()) });
    };
    let base = base(trial, recipient, words);
    if trial.alone(at) {
        return Decision::Alone(base);
    }
    let moves = verdict.may_fail_over(0) && !trial.may_have_sent(at);
    let waits = |base| waits(&verdict, recipient, base, setting);
    match verdict.class {
        Class::NotForThisRelay if moves && !setting.is_last => {
            Decision::Moves(pending.fallback.clone())
        }
        Class::NotForThisRelay => Decision::Settled(cannot_be_carried(pending, base, setting)),
        Class::RelayFault | Class::Transient if moves && !setting.is_last => {
            Decision::Moves(Some(waits(base)))
        }
        Class::RelayFault | Class::Transient => Decision::Settled(waits(base)),
        Class::Accepted => {
            let remote_queue_id = base.words.text.as_deref().and_then(queue_id);
            Decision::Settled(Change {
                to: RecipientState::Sent,
                tried: true,
                remote_queue_id,
                ..base
            })
        }
        Class::RecipientPermanent | Class::MessagePermanent => {
            Decision::Settled(Change { to: RecipientState::Failed, tried: true, ..base })
        }
        Class::Unknown => Decision::Settled(unknown(trial, recipient, base, setting)),
    }
}

/// What becomes of a recipient when no relay is left to be asked.
pub fn unasked(pending: &Pending, setting: &Setting) -> Change {
    let recipient = &pending.due;
    match &pending.fallback {
        // Soon, and not one more fault: the relay that is full does its part.
        Some(fallback) if setting.crowded && !fallback.to.is_settled() => Change {
            wait: SOON,
            attempt_id: None,
            tried: false,
            faulted: false,
            ..fallback.clone()
        },
        Some(fallback) => Change { attempt_id: None, ..fallback.clone() },
        None if setting.crowded => {
            let wait = SOON;
            Change {
                wait,
                ..Change::of(recipient.recipient_id, waiting(recipient), Words::default())
            }
        }
        None => {
            let (reason, text) = if setting.resting {
                ("relay_resting", "the relay rests after faults; it is asked again before long")
            } else {
                ("no_relay", "no relay may carry this sender's mail")
            };
            let words = Words {
                reason: Some(reason.to_owned()),
                text: Some(text.to_owned()),
                ..Words::default()
            };
            let base = Change::of(recipient.recipient_id, waiting(recipient), words);
            faulted(recipient, base, Cause::Relay, None, setting)
        }
    }
}

/// No relay that answered can carry it. That is the last word only if all have answered.
fn cannot_be_carried(pending: &Pending, base: Change, setting: &Setting) -> Change {
    let attempt_id = base.attempt_id;
    match &pending.fallback {
        Some(fallback) => Change { attempt_id, ..fallback.clone() },
        None if setting.crowded => Change { to: waiting(&pending.due), wait: SOON, ..base },
        None if setting.resting || !setting.is_last => {
            faulted(&pending.due, base, Cause::Relay, None, setting)
        }
        None => Change { to: RecipientState::Failed, tried: true, ..base },
    }
}

fn base(trial: &Trial, recipient: &Due, words: Words) -> Change {
    Change {
        attempt_id: Some(trial.attempt_id),
        relay_id: trial.relay_id,
        ..Change::of(recipient.recipient_id, waiting(recipient), words)
    }
}

fn waits(verdict: &Verdict, recipient: &Due, base: Change, setting: &Setting) -> Change {
    if verdict.class == Class::RelayFault {
        let cause = if verdict.reason.is_about_credentials() { Cause::Login } else { Cause::Relay };
        return faulted(recipient, base, cause, verdict.wait, setting);
    }
    let cause = match (verdict.reason, verdict.scope) {
        (Reason::Greylisted, _) => Cause::Greylisted,
        (_, Scope::Connection) => Cause::Connection,
        _ => Cause::Transient,
    };
    let tries = u32::try_from(recipient.tries).unwrap_or(0) + 1;
    let wait = next_wait(cause, tries, verdict.wait, rand::random());
    let to = if setting.is_over { RecipientState::Failed } else { RecipientState::Deferred };
    Change { to, wait, tried: true, ..base }
}

/// No relay could be used: nothing was said of the recipient.
fn faulted(
    recipient: &Due,
    base: Change,
    cause: Cause,
    named: Option<Duration>,
    setting: &Setting,
) -> Change {
    let rounds = u32::try_from(recipient.faults).unwrap_or(0) + 1;
    let wait = next_wait(cause, rounds, named, rand::random());
    let to = if setting.is_over { RecipientState::Failed } else { waiting(recipient) };
    Change { to, wait, faulted: true, ..base }
}

fn unknown(trial: &Trial, recipient: &Due, base: Change, setting: &Setting) -> Change {
    let policy = setting.on_unknown.or(trial.on_unknown).unwrap_or(setting.instance);
    if policy == OnUnknown::Hold || recipient.resends >= MOST_RESENDS {
        return Change { to: RecipientState::Unknown, ..base };
    }
    let rounds = u32::try_from(recipient.resends).unwrap_or(0) + 1;
    let wait = next_wait(Cause::Connection, rounds, None, rand::random());
    Change { to: RecipientState::Queued, wait, resend: true, ..base }
}

fn waiting(recipient: &Due) -> RecipientState {
    if recipient.state == "deferred" { RecipientState::Deferred } else { RecipientState::Queued }
}

/// The remote queue's id, where the reply names it: `Ok: queued as 4XyZ…`.
fn queue_id(text: &str) -> Option<String> {
    let behind = text.split_once("queued as ")?.1;
    let id: String =
        behind.chars().take_while(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it)).collect();
    (!id.is_empty() && id.len() <= 128).then_some(id)
}
