//! What is refused for good because of the message itself: final for all its recipients.

use super::super::rule::Code::{Five, Is as Codes};
use super::super::rule::Enhanced::{Any, Is, Subject};
use super::super::rule::Rule;
use super::{CONTENT, TRANSACTION};
use crate::outside::smtp::Phase::{Data, Dot, Mail};
use crate::sending::outcome::Class::{MessagePermanent, NotForThisRelay};
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::Message;

pub(super) const RULES: &[Rule] = &[
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(4, 6), (4, 14)]),
        words: "",
        then: (MessagePermanent, Message, Reason::MailLoop),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: r"too many hops|mail loop|\bloop(ing)?\b.{0,20}(detected|found)|hop count",
        then: (MessagePermanent, Message, Reason::MailLoop),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: r"\bvirus|malware|infected|trojan|phish",
        then: (MessagePermanent, Message, Reason::Virus),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: "attachment|file type|executable|security issue|content (was |has been )?rejected|prohibited (content|file)|banned (content|file|name)",
        then: (MessagePermanent, Message, Reason::ContentRefused),
    },
    // RFC 5321 §2.3.8 and §4.5.3.1.6, RFC 5322 §3.6: bare line feeds, long lines, bad headers.
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: r"bare <?(lf|cr|newline|line.?feed|carriage)|bad header|header.{0,30}(missing|invalid|duplicate|malformed|syntax)|(missing|duplicate|invalid|multiple).{0,30}header|line.{0,15}too long|rfc.?5322|not rfc|\b8.?bit\b|message.?id|\bmime\b|multiple.{0,20} from\b",
        then: (MessagePermanent, Message, Reason::MessageMalformed),
    },
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: r"spam|unsolicited|\bube\b|\bbulk\b|\bjunk\b|\bscore",
        then: (MessagePermanent, Message, Reason::SpamContent),
    },
    // RFC 3463 §3.7: content that cannot be carried or converted.
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Subject(6),
        words: "",
        then: (MessagePermanent, Message, Reason::ContentRefused),
    },
    Rule {
        when: CONTENT,
        code: Codes(&[500, 501]),
        enhanced: Any,
        words: "",
        then: (MessagePermanent, Message, Reason::MessageMalformed),
    },
    // RFC 1870 §6.3: a bare 552 to MAIL or to the message is its size.
    Rule {
        when: &[Mail, Data, Dot],
        code: Codes(&[552]),
        enhanced: Is(&[(7, 0), (7, 1)]),
        words: "",
        then: (MessagePermanent, Message, Reason::ContentRefused),
    },
    Rule {
        when: &[Mail, Data, Dot],
        code: Codes(&[552]),
        enhanced: Any,
        words: "",
        then: (NotForThisRelay, Message, Reason::MessageTooBig),
    },
];
