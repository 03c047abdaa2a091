//! `classify`: the one place that says what became of a step of the conversation.

use std::time::Duration;

use super::rule::{Compiled, Heard};
use super::silence::{judge_lack, judge_silence};
use super::{Class, Reason, Said, Scope, Verdict, rules, wait_named};
use crate::outside::smtp::{Phase, Reply};

/// What follows from what was said (or not) in this phase. Pure, and total: there is no input
/// without a verdict.
pub fn classify(phase: Phase, said: &Said<'_>) -> Verdict {
    match said {
        Said::Silence(silence) => judge_silence(phase, *silence),
        Said::Lacks(capability) => judge_lack(*capability),
        Said::Reply(reply) => judge_reply(phase, reply),
    }
}

fn judge_reply(phase: Phase, reply: &Reply) -> Verdict {
    match (phase, reply.code) {
        // DATA is answered by 354 and by nothing else (RFC 5321 §4.3.2). A 250 here comes from a
        // server that is out of step; the dot was not sent, so nothing was accepted.
        (Phase::Data, 354) => accepted(phase),
        (Phase::Data, 200..=299) => out_of_step(phase),
        // Any 2xx is a yes, also an odd one (RFC 5321 §4.3.2): 251 and 252 at RCPT most of all.
        (_, 200..=299) => accepted(phase),
        (_, 400..=599) => judge_refusal(phase, reply),
        // 3xx out of place (a second 334, a 354 after the dot), 1xx, 6xx: no answer at all.
        _ => out_of_step(phase),
    }
}

fn accepted(phase: Phase) -> Verdict {
    let scope = match phase {
        Phase::Rcpt => Scope::Recipient,
        Phase::Mail | Phase::Data | Phase::Dot => Scope::Message,
        _ => Scope::Connection,
    };
    Verdict::new(Class::Accepted, scope, Reason::Accepted)
}

/// The relay does not speak SMTP as it should. After the dot that is as good as silence: it
/// neither took nor refused the message, and a second copy must not leave.
fn out_of_step(phase: Phase) -> Verdict {
    match phase {
        Phase::Dot => Verdict::new(Class::Unknown, Scope::Message, Reason::ProtocolError),
        _ => Verdict::new(Class::RelayFault, Scope::Relay, Reason::ProtocolError),
    }
}

fn judge_refusal(phase: Phase, reply: &Reply) -> Verdict {
    let heard = Heard::new(reply);
    let first = rules::all().iter().find(|compiled: &&Compiled| compiled.fits(phase, &heard));
    let Some(Compiled { rule, .. }) = first else {
        return out_of_step(phase);
    };
    let (class, scope, reason) = rule.then;
    let wait = match class {
        Class::Transient | Class::RelayFault => wait_named(&reply.text),
        _ => None,
    };
    // Too many in one transaction is cured by another one (RFC 5321 §4.5.3.1.10): the rest may go
    // at once. After DATA it is the same transaction that would come again, so no haste there.
    let others_fit = reason == Reason::TooManyRecipients && phase == Phase::Rcpt;
    let at_once = others_fit.then_some(Duration::ZERO);
    Verdict { class, scope, reason, wait: wait.or(at_once) }
}
