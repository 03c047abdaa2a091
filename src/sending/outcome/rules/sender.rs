//! From MAIL on: what is refused because of the sender.

use super::super::rule::Code::{Five, Four, Is as Codes};
use super::super::rule::Enhanced::{Any, Is, Range};
use super::super::rule::Rule;
use super::TRANSACTION;
use crate::outside::smtp::Phase::{Mail, Rcpt};
use crate::sending::outcome::Class::{MessagePermanent, NotForThisRelay, RelayFault, Transient};
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::{Message, RelayAndSender};

/// The words of a failed SPF, DKIM or DMARC check.
const AUTHENTICATION: &str = r"\b(spf|dkim|dmarc)\b|unauthenticated (e-?mail|sender)|sender is unauthenticated|email authentication|authentication information";

pub(super) const RULES: &[Rule] = &[
    // SPF, DKIM and DMARC judge a sender *through one relay*: its address stands in the SPF record
    // or not, it signs for the domain or not (RFC 7208, 7489; x.7.20 to x.7.29 of RFC 7372).
    // Another relay of this sender may pass, and when there is none the refusal is final: the
    // cure is a change of the sender's DNS.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Range(7, 20, 30),
        words: "",
        then: (NotForThisRelay, RelayAndSender, Reason::SenderAuthentication),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(7, 509), (7, 515)]),
        words: "",
        then: (NotForThisRelay, RelayAndSender, Reason::SenderAuthentication),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: AUTHENTICATION,
        then: (NotForThisRelay, RelayAndSender, Reason::SenderAuthentication),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Range(7, 20, 27),
        words: "",
        then: (Transient, RelayAndSender, Reason::SenderAuthentication),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: AUTHENTICATION,
        then: (Transient, RelayAndSender, Reason::SenderAuthentication),
    },
    // An access table of Postfix: the operator of the mail server has blocked this sender. Going
    // around the block through another relay would be wrong.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: "sender address rejected: access denied|sasl login name rejected",
        then: (MessagePermanent, Message, Reason::SenderRefused),
    },
    // The account may not send as this sender (Postfix `reject_sender_login_mismatch`, Exchange
    // 5.7.60, unverified identities): another relay of the sender's domain may.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(7, 60), (7, 750)]),
        words: "",
        then: (RelayFault, RelayAndSender, Reason::SenderNotOwned),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"not owned by|send.?as.?denied|not (allowed|authori[sz]ed|permitted) to (send (as|from|on behalf|mail from|using)|use)|(address|sender|domain|identity|from).{0,60}(not|un|n't been )( ?yet)? ?verified|does not (match|belong to).{0,40}(account|user|identity|sender|login)|sandbox (sub)?domain|failed the check|sender identity|(sender|from|your) domain.{0,40}(not (allowed|authori[sz]ed|permitted|registered|configured)|unregistered)|domain not allowed|not one of your (senders|identities)|unregistered domain",
        then: (RelayFault, RelayAndSender, Reason::SenderNotOwned),
    },
    // The sender's domain cannot be found by this relay (x.1.8): its resolver, or our DNS.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(1, 8)]),
        words: "",
        then: (RelayFault, RelayAndSender, Reason::SenderDomainNotFound),
    },
    Rule {
        when: &[Mail, Rcpt],
        code: Five,
        enhanced: Any,
        words: r"(domain of sender|sender('s)? (address )?(rejected: )?(domain|host)).{0,60}(not found|not exist|n't exist|not resolve|unknown)|sender address rejected: domain not found",
        then: (RelayFault, RelayAndSender, Reason::SenderDomainNotFound),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Is(&[(1, 8)]),
        words: "",
        then: (Transient, RelayAndSender, Reason::SenderDomainNotFound),
    },
    Rule {
        when: &[Mail, Rcpt],
        code: Four,
        enhanced: Any,
        words: r"(domain of sender|sender (address )?(rejected: )?(domain|host)).{0,60}(not found|not exist|n't exist|not resolve)",
        then: (Transient, RelayAndSender, Reason::SenderDomainNotFound),
    },
    // RFC 6531 §3.4: the address needs SMTPUTF8, found out only now; x.6.7 or 555.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: "smtputf8",
        then: (NotForThisRelay, Message, Reason::Smtputf8Missing),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(6, 7), (6, 9)]),
        words: "",
        then: (NotForThisRelay, Message, Reason::Smtputf8Missing),
    },
    // RFC 5321 §4.1.1.11: 555, a parameter of MAIL or RCPT is not known here.
    Rule {
        when: &[Mail, Rcpt],
        code: Codes(&[555]),
        enhanced: Any,
        words: "",
        then: (NotForThisRelay, Message, Reason::OptionUnsupported),
    },
    Rule {
        when: &[Mail],
        code: Codes(&[501, 504]),
        enhanced: Any,
        words: "parameter|option|not implemented",
        then: (NotForThisRelay, Message, Reason::OptionUnsupported),
    },
    // The sender's address itself is wrong (x.1.7, 501): our fault, on every relay.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(1, 7)]),
        words: "",
        then: (MessagePermanent, Message, Reason::SenderMalformed),
    },
    Rule {
        when: &[Mail],
        code: Five,
        enhanced: Any,
        words: r"syntax|malformed|invalid (sender|address|domain)|sender address rejected: need|bad (sender|address)",
        then: (MessagePermanent, Message, Reason::SenderMalformed),
    },
    Rule {
        when: &[Mail],
        code: Codes(&[501]),
        enhanced: Any,
        words: "",
        then: (MessagePermanent, Message, Reason::SenderMalformed),
    },
    // Exim's callout and others: the address bounces would go to does not exist.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"sender verif(y|ication) failed|sender (address )?(was |is )?(rejected|refused|denied|blocked)|envelope sender|badmailfrom",
        then: (MessagePermanent, Message, Reason::SenderRefused),
    },
];
