//! The answer of `classify`: what to do, with whom, why, and not before when.

use std::time::Duration;

use super::Reason;
use crate::outside::smtp::Phase;

/// What follows for the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The step succeeded; at [`Phase::Dot`] the relay took responsibility (RFC 5321 §4.2.5).
    Accepted,
    /// Final for this recipient, on every relay. Costs one session.
    RecipientPermanent,
    /// Final for all recipients of the transaction, on every relay.
    MessagePermanent,
    /// The relay (or the relay for this sender) does not do its part: take another, kill nothing.
    RelayFault,
    /// Not now: retry by policy.
    Transient,
    /// This relay cannot carry this message, and that is no fault of it: the next eligible one;
    /// when none is left, the recipients fail with this reply.
    NotForThisRelay,
    /// The dot was sent and no answer came: neither failed nor sent, and no failover.
    Unknown,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::RecipientPermanent => "recipient_permanent",
            Self::MessagePermanent => "message_permanent",
            Self::RelayFault => "relay_fault",
            Self::Transient => "transient",
            Self::NotForThisRelay => "not_for_this_relay",
            Self::Unknown => "unknown",
        }
    }
}

/// How far the finding reaches. Only [`Scope::Relay`] may move a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// This connection only: another one to the same relay may do.
    Connection,
    /// Everything that would go through this relay.
    Relay,
    /// This relay for this sender; other senders are served.
    RelayAndSender,
    /// All recipients of this recipient's domain.
    Domain,
    Recipient,
    Message,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Relay => "relay",
            Self::RelayAndSender => "relay_and_sender",
            Self::Domain => "domain",
            Self::Recipient => "recipient",
            Self::Message => "message",
        }
    }
}

/// Tries that a temporary refusal stays on the relay that gave it.
const TRIES_BEFORE_MOVING: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub class: Class,
    pub scope: Scope,
    pub reason: Reason,
    /// The wait the other side named; zero means: again at once, in a new transaction.
    pub wait: Option<Duration>,
}

impl Verdict {
    pub(super) fn new(class: Class, scope: Scope, reason: Reason) -> Self {
        Self { class, scope, reason, wait: None }
    }

    /// Whether another eligible relay may be tried, after so many tries on this one.
    ///
    /// A connection that was cut before the dot leaves no trace, so it may move at once. A plain
    /// 4xx stays for two tries: greylisting knows a sender by its relay, and a rate limit is not
    /// there to be driven around.
    pub fn may_fail_over(&self, tries_here: u32) -> bool {
        match self.class {
            Class::RelayFault | Class::NotForThisRelay => true,
            Class::Transient => {
                tries_here >= TRIES_BEFORE_MOVING
                    || (self.scope == Scope::Connection && self.reason != Reason::RateLimited)
            }
            _ => false,
        }
    }

    /// Whether this one answer was given for several recipients, and fits only some of them.
    ///
    /// Some servers look a recipient up only after the dot. With more than one recipient in the
    /// transaction nobody can tell which is meant, so each must be asked alone, once.
    pub fn must_be_asked_alone(&self, phase: Phase, n_recipients: usize) -> bool {
        self.class == Class::RecipientPermanent && phase >= Phase::Data && n_recipients > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refusal_after_the_dot_does_not_speak_for_several_recipients() {
        let gone =
            Verdict::new(Class::RecipientPermanent, Scope::Recipient, Reason::MailboxNotFound);
        assert!(gone.must_be_asked_alone(Phase::Dot, 2));
        assert!(!gone.must_be_asked_alone(Phase::Dot, 1));
        assert!(!gone.must_be_asked_alone(Phase::Rcpt, 2));
    }

    #[test]
    fn a_refused_recipient_and_an_unknown_outcome_never_fail_over() {
        let may =
            |class, scope, tries| Verdict::new(class, scope, Reason::Refused).may_fail_over(tries);
        assert!(may(Class::RelayFault, Scope::RelayAndSender, 1));
        assert!(may(Class::NotForThisRelay, Scope::Message, 1));
        assert!(may(Class::Transient, Scope::Connection, 1));
        for tries in 1..9 {
            assert!(!may(Class::RecipientPermanent, Scope::Recipient, tries));
            assert!(!may(Class::MessagePermanent, Scope::Message, tries));
            assert!(!may(Class::Unknown, Scope::Message, tries));
            assert!(!may(Class::Accepted, Scope::Message, tries));
        }
    }

    #[test]
    fn a_temporary_refusal_stays_for_two_tries_and_then_may_move() {
        let refusal = |scope, reason| Verdict::new(Class::Transient, scope, reason);
        let greylisted = refusal(Scope::Recipient, Reason::Greylisted);
        assert_eq!([1, 2, 3].map(|tries| greylisted.may_fail_over(tries)), [false, true, true]);
        assert!(!refusal(Scope::Connection, Reason::RateLimited).may_fail_over(1));
    }
}
