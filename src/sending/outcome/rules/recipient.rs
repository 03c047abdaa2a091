//! What is refused for good because of one recipient. Most servers say it at RCPT, some only
//! after the dot. Words beat a generic code: 5.1.1 with "over quota" is a full mailbox.

use super::super::rule::Code::{Five, Is as Codes, Negative};
use super::super::rule::Enhanced::{Any, Is, Range};
use super::super::rule::Rule;
use super::{ADDRESSED, TRANSACTION};
use crate::outside::smtp::Phase::Rcpt;
use crate::sending::outcome::Class::{NotForThisRelay, RecipientPermanent, Transient};
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::{Domain, Message, Recipient};

/// Looked at before the rules that blame the relay, whose words these would meet.
pub(super) const EARLY: &[Rule] = &[
    // The relay remembers a bounce, a complaint or an unsubscription: "blacklisted" here is the
    // recipient (Amazon SES, Postmark, SendGrid, Mailgun).
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"suppression list|marked as inactive|inactive recipient|(^|: )address blacklisted|recipient.{0,40}(unsubscribed|suppressed)|previously bounced",
        then: (RecipientPermanent, Recipient, Reason::SuppressedByRelay),
    },
    // The recipient's own list, or a group that takes mail from members only (Exchange).
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"resolver\.rst\.\w*(auth|sender|restrict)|blocked by (the )?recipient|recipient.{0,30}(personal|own).{0,20}(block|black)|recipient has (blocked|black)|only accepts (mail|messages) from",
        then: (RecipientPermanent, Recipient, Reason::Policy),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(7, 124), (7, 129), (7, 133), (7, 134)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::Policy),
    },
    // How much a mailbox may receive in an hour is no limit of our account.
    Rule {
        when: ADDRESSED,
        code: Negative,
        enhanced: Any,
        words: r"(recipient|mailbox|user).{0,80}receiv(e|ing)( mail| messages?| email)?( \w+){0,3} (rate|limit|too|quota)",
        then: (Transient, Recipient, Reason::RateLimited),
    },
];

pub(super) const RULES: &[Rule] = &[
    // A full mailbox (x.2.2), refused for good by the other side.
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(2, 2)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxFull),
    },
    // RFC 1870 §6: 552 or x.3.4. Gmail and Exchange say x.2.3 for their own limit too.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(3, 4), (2, 3)]),
        words: "",
        then: (NotForThisRelay, Message, Reason::MessageTooBig),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"(message|mail|file|content|data)( \w+){0,2} too (big|large|long)|(message|mail)( file)? size|size (limit|exceeds)|max(imum)? message|larger than",
        then: (NotForThisRelay, Message, Reason::MessageTooBig),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"(mailbox|inbox|account|user).{0,40}\bfull\b|over ?quota|over (its|the|their|his) (\w+ )?quota|quota (is |has been )?(exceeded|full)|exceed(ed|s)? (\w+ ){0,3}(quota|storage|disk)|not enough (disk |storage )?space|insufficient (disk|storage|space|system storage)|out of storage",
        then: (RecipientPermanent, Recipient, Reason::MailboxFull),
    },
    // A bare 552 to RCPT is "exceeded storage allocation" (RFC 5321 §4.2.2); elsewhere it is the
    // size of the message.
    Rule {
        when: &[Rcpt],
        code: Codes(&[552]),
        enhanced: Any,
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxFull),
    },
    // The domain takes no mail: null MX (RFC 7505), 556 (RFC 7504). Exchange uses the same 5.1.10
    // for an unknown mailbox, so the words decide.
    Rule {
        when: ADDRESSED,
        code: Codes(&[556]),
        enhanced: Any,
        words: "",
        then: (RecipientPermanent, Domain, Reason::DomainRefusesMail),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"null ?mx|(domain|host) (does not|doesn't) accept (e-?)?mail",
        then: (RecipientPermanent, Domain, Reason::DomainRefusesMail),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(1, 2), (4, 4)]),
        words: "",
        then: (RecipientPermanent, Domain, Reason::DomainNotFound),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"domain (name )?(is )?(not found|unknown|invalid)|domain.{0,30}(does not|doesn't) exist|no such domain|(host|domain) unknown|unknown (host|domain)|host not found",
        then: (RecipientPermanent, Domain, Reason::DomainNotFound),
    },
    // Switched off, but there (x.2.1; x.7.13 and x.7.17 of RFC 7293).
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(7, 13), (7, 17)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxInactive),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"(account|mailbox|user|recipient|address).{0,60}(disabled|inactive|suspended|discontinued|deactivated|locked|frozen|expired|closed)|inactive (account|mailbox|user)",
        then: (RecipientPermanent, Recipient, Reason::MailboxInactive),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(2, 1), (2, 0)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxInactive),
    },
    // Moved (RFC 5321 §3.4: 551; x.1.6).
    Rule {
        when: ADDRESSED,
        code: Codes(&[551]),
        enhanced: Any,
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxMoved),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(1, 6)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxMoved),
    },
    // The address cannot be one (x.1.3, 501 at RCPT).
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(1, 3)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::AddressMalformed),
    },
    Rule {
        when: &[Rcpt],
        code: Codes(&[501]),
        enhanced: Any,
        words: "",
        then: (RecipientPermanent, Recipient, Reason::AddressMalformed),
    },
    // No such mailbox. Exchange Online adds 5.1.10, 5.1.351, and 5.4.1 where the edge refuses.
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(1, 1), (1, 10), (1, 351)]),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::MailboxNotFound),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Is(&[(4, 1)]),
        words: "access denied|recipient",
        then: (RecipientPermanent, Recipient, Reason::MailboxNotFound),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Any,
        words: r"(user|recipient|mailbox|address|account|addressee)( \S+)? (is )?(unknown|not found|not known|unavailable|invalid)|unknown (user|recipient|mailbox|address|account|local)|no such (user|recipient|mailbox|address|person|local|account)|no mailbox|(does not|doesn't|don't|not) exist|(user|recipient|address|mailbox) (address )?rejected|address unknown|invalid (recipient|mailbox|address|user)|not a (valid|known) (mailbox|user|recipient|address)|doesn't have an? .{0,40}account|unrout(e)?able address|(isn't|not) (a|our) (valid )?(customer|user)|not listed in",
        then: (RecipientPermanent, Recipient, Reason::MailboxNotFound),
    },
    Rule {
        when: ADDRESSED,
        code: Five,
        enhanced: Range(1, 0, 6),
        words: "",
        then: (RecipientPermanent, Recipient, Reason::Refused),
    },
];
