//! One relay asked: how far the conversation came, what was heard, and what that means.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::group::Pending;
use crate::{
    metrics::Attempt,
    on_unknown::OnUnknown,
    outside::smtp::{Fault, FaultKind, NotForThisRelay, Phase, Reply},
    sending::{
        messages::store::complete::{Ended, Said as SaidOf, Words},
        outcome::{Capability, Class, Reason, Said, Scope, Silence, Verdict, classify},
        relays::Relay,
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
    /// None where no relay was asked.
    pub relay_id: Option<Uuid>,
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
    pub fn new(relay: &Relay, started_at: DateTime<Utc>, recipients: usize) -> Self {
        Self {
            relay_id: Some(relay.id),
            on_unknown: relay.on_unknown,
            ..Self::without_relay(&relay.name, started_at, recipients)
        }
    }

    /// What stands in for a relay is asked.
    pub fn without_relay(name: &str, started_at: DateTime<Utc>, recipients: usize) -> Self {
        Self {
            attempt_id: Uuid::now_v7(),
            relay_id: None,
            relay_name: name.to_owned(),
            on_unknown: None,
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
            NotForThisRelay::NoEightBit => Capability::EightBitMime,
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
                scope: Scope::RelayAndSender,
                reason: Reason::RelayMisconfigured,
                wait: None,
            }),
        }
    }

    /// The verdicts on those whom the relay refused by name.
    pub fn refusals(&self) -> impl Iterator<Item = Verdict> {
        self.heard.iter().filter_map(|heard| match heard {
            Heard::Refused(phase, reply) => Some(classify(*phase, &Said::Reply(reply))),
            _ => None,
        })
    }

    pub fn words(&self) -> Words {
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
                    "given up before the dot: the lease was lost, the time was over, or a recipient settled"
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
    pub fn of(&self, at: usize) -> Option<(Verdict, Words)> {
        if let Heard::Refused(phase, reply) = &self.heard[at] {
            let verdict = classify(*phase, &Said::Reply(reply));
            return Some((verdict, words(reply, Some(verdict.reason))));
        }
        self.verdict().map(|verdict| (verdict, self.words()))
    }

    /// Whether the answer to the dot was given for this recipient and others, and fits only some.
    pub fn alone(&self, at: usize) -> bool {
        let accepted = self.heard.iter().filter(|it| matches!(it, Heard::Accepted)).count();
        matches!(self.heard[at], Heard::Accepted)
            && self.verdict().is_some_and(|it| it.must_be_asked_alone(self.phase, accepted))
    }

    /// Whether the dot may have been sent for this recipient: then no other relay is asked.
    pub fn may_have_sent(&self, at: usize) -> bool {
        self.marked && matches!(self.heard[at], Heard::Accepted)
    }

    /// For the metrics, which count what relays were asked.
    pub fn counted(&self) -> Attempt<'_> {
        Attempt {
            relay_id: self.relay_id.unwrap_or_default(),
            relay_name: &self.relay_name,
            phase: self.phase.as_str(),
            result: self.result(),
            took: (self.ended_at - self.started_at).to_std().unwrap_or_default(),
        }
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

    pub fn ended(&self, recipients: &[Pending]) -> Ended {
        let said = (0..recipients.len()).filter_map(|at| {
            let (verdict, words) = self.of(at)?;
            Some(SaidOf {
                recipient_id: recipients[at].due.recipient_id,
                result: verdict.class.as_str(),
                words,
            })
        });
        Ended {
            attempt_id: self.attempt_id,
            relay_id: self.relay_id,
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
