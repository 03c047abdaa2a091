//! Silence and missing capabilities: what no reply means, by how far the conversation had come.

use super::{Capability, Class, Reason, Scope, Silence, Verdict};
use crate::outside::smtp::Phase;

/// Before MAIL nobody has seen the message: the relay is at fault, and the next one may be asked.
/// From MAIL to the last byte before the dot nothing was accepted (RFC 5321 §4.1.1.4): the
/// connection is gone, the message may be sent again, here or elsewhere. Once the dot is on its
/// way the server may have taken the message (RFC 5321 §4.2.5, §6.1): only *unknown* is true.
pub(super) fn judge_silence(phase: Phase, silence: Silence) -> Verdict {
    let reason = match silence {
        Silence::HostNotFound => Reason::HostNotFound,
        Silence::DnsFailed
        | Silence::ConnectionRefused
        | Silence::Unreachable
        | Silence::Closed => Reason::Network,
        Silence::TimedOut => Reason::TimedOut,
        Silence::TlsFailed | Silence::InjectedPlaintext => Reason::TlsFailed,
        Silence::NotSmtp => Reason::ProtocolError,
    };
    match phase {
        Phase::Dot => Verdict::new(Class::Unknown, Scope::Message, reason),
        Phase::Mail | Phase::Rcpt | Phase::Data => {
            Verdict::new(Class::Transient, Scope::Connection, reason)
        }
        _ => Verdict::new(Class::RelayFault, Scope::Relay, reason),
    }
}

/// A relay without TLS or AUTH where both are set up is misconfigured, or somebody strips the
/// offer: a fault of the relay, and never a reason to go on in plain text. A relay without
/// SMTPUTF8, or with a smaller SIZE, is in order: this message is not for it.
pub(super) fn judge_lack(lack: Capability) -> Verdict {
    match lack {
        Capability::Tls => Verdict::new(Class::RelayFault, Scope::Relay, Reason::TlsFailed),
        Capability::Auth => Verdict::new(Class::RelayFault, Scope::Relay, Reason::AuthNotOffered),
        Capability::Smtputf8 => {
            Verdict::new(Class::NotForThisRelay, Scope::Message, Reason::Smtputf8Missing)
        }
        Capability::EightBitMime => {
            Verdict::new(Class::NotForThisRelay, Scope::Message, Reason::EightBitMissing)
        }
        Capability::Size => {
            Verdict::new(Class::NotForThisRelay, Scope::Message, Reason::MessageTooBig)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Silence; 9] = [
        Silence::HostNotFound,
        Silence::DnsFailed,
        Silence::ConnectionRefused,
        Silence::Unreachable,
        Silence::TimedOut,
        Silence::Closed,
        Silence::TlsFailed,
        Silence::InjectedPlaintext,
        Silence::NotSmtp,
    ];

    #[test]
    fn silence_is_a_fault_of_the_relay_only_before_mail() {
        for silence in ALL {
            for phase in [Phase::Dns, Phase::Connect, Phase::Tls, Phase::Greeting, Phase::Ehlo] {
                let verdict = judge_silence(phase, silence);
                assert_eq!((verdict.class, verdict.scope), (Class::RelayFault, Scope::Relay));
            }
            assert_eq!(judge_silence(Phase::Auth, silence).class, Class::RelayFault);
        }
    }

    #[test]
    fn before_the_dot_the_message_may_go_again_and_elsewhere() {
        for silence in ALL {
            for phase in [Phase::Mail, Phase::Rcpt, Phase::Data] {
                let verdict = judge_silence(phase, silence);
                assert_eq!((verdict.class, verdict.scope), (Class::Transient, Scope::Connection));
                assert!(verdict.may_fail_over(1));
            }
        }
    }

    #[test]
    fn after_the_dot_every_silence_is_unknown_and_stays_on_this_relay() {
        for silence in ALL {
            let verdict = judge_silence(Phase::Dot, silence);
            assert_eq!(verdict.class, Class::Unknown);
            assert!(!verdict.may_fail_over(1));
        }
    }

    #[test]
    fn a_missing_capability_of_the_message_is_no_mark_against_the_relay() {
        assert_eq!(judge_lack(Capability::Size).class, Class::NotForThisRelay);
        assert_eq!(judge_lack(Capability::Smtputf8).reason, Reason::Smtputf8Missing);
        assert_eq!(judge_lack(Capability::Tls).class, Class::RelayFault);
        assert_eq!(judge_lack(Capability::Auth).reason, Reason::AuthNotOffered);
    }
}
