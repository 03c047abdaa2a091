//! What was said, and what becomes of each recipient. Nothing here speaks or waits.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Deliver, transaction::Batch};
use crate::{
    on_unknown::OnUnknown,
    outside::smtp::{Fault, FaultKind, NotForThisRelay, Phase, Reply},
    sending::{
        messages::{
            RecipientState,
            store::{
                complete::{Change, Ended, Report, Said as SaidOf, Words},
                load::Due,
                recover::MOST_RESENDS,
            },
        },
        outcome::{Capability, Class, Reason, Said, Silence, Verdict, classify},
        relays::Relay,
        retry::{Cause, next_wait},
    },
};

/// What a relay said of one recipient before the dot.
#[derive(Debug, Clone)]
pub enum Heard {
    Accepted,
    Refused(Phase, Reply),
    Nothing,
}

/// How the conversation ended.
#[derive(Debug, Clone)]
enum End {
    /// With a complete set of answers to RCPT, none accepted.
    Refused,
    /// The dot was answered.
    Answered(Reply),
    /// It broke off with this reply or silence.
    Broke(Option<Reply>, Silence, String),
    Lacks(Capability, String),
    /// Our own doing: the mark was refused, the dot never sent.
    NotSent,
    /// The relay cannot be used as it is set up.
    Unusable(String),
}

/// One relay asked.
#[derive(Debug, Clone)]
pub struct Trial {
    pub attempt_id: Uuid,
    pub relay_id: Uuid,
    pub relay_name: String,
    pub on_unknown: Option<OnUnknown>,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub phase: Phase,
    pub marked: bool,
    pub peer: Option<String>,
    pub tls: Option<String>,
    pub heard: Vec<Heard>,
    end: End,
}

impl Trial {
    pub fn new(
        attempt_id: Uuid,
        relay: &Relay,
        started_at: DateTime<Utc>,
        recipients: usize,
    ) -> Self {
        Self {
            attempt_id,
            relay_id: relay.id,
            relay_name: relay.name.clone(),
            on_unknown: relay.on_unknown,
            started_at,
            ended_at: started_at,
            phase: Phase::Connect,
            marked: false,
            peer: None,
            tls: None,
            heard: vec![Heard::Nothing; recipients],
            end: End::Refused,
        }
    }

    pub fn broke(&mut self, fault: Fault) {
        self.phase = fault.phase;
        let words = match std::error::Error::source(&fault.kind) {
            Some(source) => format!("{}: {source}", fault.kind),
            None => fault.kind.to_string(),
        };
        self.end = match fault.kind {
            FaultKind::Reply(reply) => End::Broke(Some(reply), Silence::Closed, words),
            FaultKind::AuthNotOffered => End::Lacks(Capability::Auth, words),
            FaultKind::TlsNotOffered | FaultKind::ClearAuthRefused => {
                End::Lacks(Capability::Tls, words)
            }
            FaultKind::Resolve(_) => End::Broke(None, Silence::HostNotFound, words),
            FaultKind::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                End::Broke(None, Silence::ConnectionRefused, words)
            }
            FaultKind::Io(_) => End::Broke(None, Silence::Unreachable, words),
            FaultKind::TimedOut(_) => End::Broke(None, Silence::TimedOut, words),
            FaultKind::Closed => End::Broke(None, Silence::Closed, words),
            FaultKind::Tls(_) => End::Broke(None, Silence::TlsFailed, words),
            FaultKind::InjectedBytes => End::Broke(None, Silence::InjectedPlaintext, words),
            FaultKind::Protocol(_) => End::Broke(None, Silence::NotSmtp, words),
            FaultKind::Malformed(why) => End::Unusable(why.to_owned()),
        };
    }

    pub fn lacks(&mut self, what: &NotForThisRelay) {
        self.phase = Phase::Mail;
        let capability = match what {
            NotForThisRelay::TooBig { .. } => Capability::Size,
            NotForThisRelay::NoSmtpUtf8 => Capability::Smtputf8,
        };
        self.end = End::Lacks(capability, what.to_string());
    }

    pub fn answered(&mut self, reply: Reply) {
        self.phase = Phase::Dot;
        self.end = End::Answered(reply);
    }

    pub fn not_sent(&mut self) {
        self.phase = Phase::Data;
        self.end = End::NotSent;
    }

    pub fn unusable(&mut self, why: String) {
        self.end = End::Unusable(why);
    }

    /// The verdict on those whom the relay did not refuse by name; none where there is none.
    pub fn verdict(&self) -> Option<Verdict> {
        match &self.end {
            End::Refused | End::NotSent => None,
            End::Answered(reply) => Some(classify(Phase::Dot, &Said::Reply(reply))),
            End::Broke(Some(reply), ..) => Some(classify(self.phase, &Said::Reply(reply))),
            End::Broke(None, silence, _) => Some(classify(self.phase, &Said::Silence(*silence))),
            End::Lacks(capability, _) => Some(classify(self.phase, &Said::Lacks(*capability))),
            End::Unusable(_) => Some(Verdict {
                class: Class::RelayFault,
                scope: crate::sending::outcome::Scope::RelayAndSender,
                reason: Reason::AuthFailed,
                wait: None,
            }),
        }
    }

    fn words(&self) -> Words {
        match &self.end {
            End::Answered(reply) | End::Broke(Some(reply), ..) => {
                words(reply, self.verdict().map(|it| it.reason))
            }
            End::Broke(None, _, text) | End::Lacks(_, text) | End::Unusable(text) => Words {
                reason: self.verdict().map(|it| it.reason.as_str().to_owned()),
                text: Some(text.clone()),
                ..Words::default()
            },
            End::NotSent => Words {
                text: Some(
                    "given up before the dot: the lease was lost, or a recipient settled meanwhile"
                        .to_owned(),
                ),
                ..Words::default()
            },
            End::Refused => self
                .heard
                .iter()
                .find_map(|heard| match heard {
                    Heard::Refused(phase, reply) => {
                        Some(words(reply, Some(classify(*phase, &Said::Reply(reply)).reason)))
                    }
                    _ => None,
                })
                .unwrap_or_default(),
        }
    }

    /// The verdict on one recipient.
    fn of(&self, at: usize) -> Option<(Verdict, Words)> {
        if let Heard::Refused(phase, reply) = &self.heard[at] {
            let verdict = classify(*phase, &Said::Reply(reply));
            return Some((verdict, words(reply, Some(verdict.reason))));
        }
        self.verdict().map(|verdict| (verdict, self.words()))
    }

    /// Whether another relay may be asked: only where all recipients may move, and no dot was sent.
    pub fn may_move(&self, recipients: &[Due]) -> bool {
        !self.marked
            && !matches!(self.end, End::NotSent)
            && (0..recipients.len()).all(|at| {
                let tries = u32::try_from(recipients[at].tries).unwrap_or(0);
                self.of(at).is_some_and(|(verdict, _)| verdict.may_fail_over(tries))
            })
    }

    /// For the metrics and the history.
    pub fn result(&self) -> &'static str {
        match (&self.end, self.verdict()) {
            (End::Refused, _) => "refused",
            (End::NotSent, _) => "not_sent",
            (_, Some(verdict)) => verdict.class.as_str(),
            (_, None) => "refused",
        }
    }

    fn ended(&self, recipients: &[Due]) -> Ended {
        let said = (0..recipients.len()).filter_map(|at| {
            let (verdict, words) = self.of(at)?;
            Some(SaidOf {
                recipient_id: recipients[at].recipient_id,
                result: verdict.class.as_str(),
                words,
            })
        });
        Ended {
            attempt_id: self.attempt_id,
            relay_id: Some(self.relay_id),
            relay_name: self.relay_name.clone(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            phase: self.phase.as_str(),
            result: self.result(),
            words: self.words(),
            peer: self.peer.clone(),
            tls: self.tls.clone(),
            recipients: said.collect(),
        }
    }
}

fn words(reply: &Reply, reason: Option<Reason>) -> Words {
    Words {
        code: i16::try_from(reply.code).ok(),
        enhanced: reply.enhanced.map(|it| it.to_string()),
        reason: reason.map(|it| it.as_str().to_owned()),
        text: Some(reply.text.clone()),
    }
}

/// What the step reports. The last relay asked decides: those before it were left because all
/// recipients could move on.
pub fn judge(work: &Deliver, batch: &Batch<'_>, trials: Vec<Trial>) -> Report {
    let window = work.app.config.sending.retry_window;
    let changes = match trials.last() {
        None => batch.recipients.iter().map(|it| no_relay(batch, it, window)).collect(),
        Some(last) => {
            (0..batch.recipients.len()).map(|at| change(work, batch, last, at, window)).collect()
        }
    };
    Report {
        message_id: batch.lease.job_id,
        lease_id: batch.lease.lease_id,
        process_id: work.app.queue.process_id,
        attempts: trials.iter().map(|it| it.ended(&batch.recipients)).collect(),
        changes,
        keep: false,
    }
}

fn no_relay(batch: &Batch<'_>, recipient: &Due, window: Duration) -> Change {
    let words = Words {
        reason: Some("no_relay".to_owned()),
        text: Some("no relay may carry this sender's mail".to_owned()),
        ..Words::default()
    };
    let blank = blank(recipient, words);
    faulted(batch, recipient, blank, Cause::Relay, None, window)
}

fn blank(recipient: &Due, words: Words) -> Change {
    Change {
        recipient_id: recipient.recipient_id,
        attempt_id: None,
        relay_id: None,
        to: RecipientState::Queued,
        wait: Duration::ZERO,
        tried: false,
        faulted: false,
        resend: false,
        words,
        remote_queue_id: None,
    }
}

fn change(work: &Deliver, batch: &Batch<'_>, trial: &Trial, at: usize, window: Duration) -> Change {
    let recipient = &batch.recipients[at];
    let Some((verdict, words)) = trial.of(at) else {
        // Accepted at RCPT, and the dot was not sent by our own doing: not counted.
        let wait = Duration::from_secs(1);
        let attempt_id = Some(trial.attempt_id);
        return Change {
            wait,
            attempt_id,
            to: waiting(recipient),
            ..blank(recipient, trial.words())
        };
    };
    let base = Change {
        attempt_id: Some(trial.attempt_id),
        relay_id: Some(trial.relay_id),
        ..blank(recipient, words.clone())
    };
    match verdict.class {
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
                (_, crate::sending::outcome::Scope::Connection) => Cause::Connection,
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
