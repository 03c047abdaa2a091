//! What no other rule knew: by phase and first digit alone (RFC 5321 §4.3.2).

use super::super::rule::Code::Five;
use super::super::rule::Enhanced::{Any, Subject};
use super::super::rule::Rule;
use super::CONTENT;
use crate::outside::smtp::Phase::{Mail, Rcpt};
use crate::sending::outcome::Class::{MessagePermanent, RecipientPermanent};
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::{Message, Recipient};

pub(super) const RULES: &[Rule] = &[
    Rule {
        when: &[Mail],
        code: Five,
        enhanced: Any,
        words: "",
        then: (MessagePermanent, Message, Reason::SenderRefused),
    },
    // A rule of the receiving side (x.7.x), or words of it: final for this message, and no
    // mark against the address.
    Rule {
        when: &[Rcpt],
        code: Five,
        enhanced: Subject(7),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::Policy),
    },
    Rule {
        when: &[Rcpt],
        code: Five,
        enhanced: Any,
        words: "polic(y|ies)|administrative|prohibit|spam|access denied|blocked|local rule",
        then: (RecipientPermanent, Recipient, Reason::Policy),
    },
    Rule {
        when: &[Rcpt],
        code: Five,
        enhanced: Any,
        words: "",
        then: (RecipientPermanent, Recipient, Reason::Refused),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Subject(7),
        words: "",
        then: (MessagePermanent, Message, Reason::Policy),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: "polic(y|ies)|administrative|prohibit|blocked|local rule",
        then: (MessagePermanent, Message, Reason::Policy),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: "",
        then: (MessagePermanent, Message, Reason::Refused),
    },
];
