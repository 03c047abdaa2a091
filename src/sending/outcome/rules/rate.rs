//! From MAIL on: not now. A 4xx is never final and never the relay's death (RFC 5321 §4.2.1).

use super::super::rule::Code::{Four, Is as Codes, Negative};
use super::super::rule::Enhanced::{Any, Is};
use super::super::rule::Rule;
use super::{CONTENT, TRANSACTION};
use crate::outside::smtp::Phase::{Dot, Mail, Rcpt};
use crate::sending::outcome::Class::Transient;
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::{Connection, Domain, Message, Recipient, Relay};

/// Greylisting (RFC 6647 §3): by name, or by how it asks to come back.
const GREYLIST: &str = r"gr[ae]y.?list|postgrey|come back (later|in)|first (time|contact)|too (soon|early)|not yet authori[sz]ed|early retry";
const RATE: &str = r"\brate\b|rate.?limit|too (many|much|fast|quickly)|throttl|tempor(ary|arily) (deferred|blocked|suspended)|exceeded|unusual|receiving mail (at|too)|server busy|concurren";

pub(super) const RULES: &[Rule] = &[
    // RFC 5321 §4.5.3.1.10: 452, or the 552 of old servers, ends the list of recipients. It says
    // nothing of a full mailbox; the rest goes in a transaction of its own, at once.
    Rule {
        when: &[Rcpt],
        code: Negative,
        enhanced: Any,
        words: r"too many (recipients|rcpts?\b|addresses)",
        then: (Transient, Recipient, Reason::TooManyRecipients),
    },
    Rule {
        when: &[Rcpt],
        code: Codes(&[452, 552]),
        enhanced: Is(&[(5, 3)]),
        words: "",
        then: (Transient, Recipient, Reason::TooManyRecipients),
    },
    // The same, told only when the message is there: it must be split.
    Rule {
        when: CONTENT,
        code: Negative,
        enhanced: Any,
        words: r"too many (recipients|rcpts?\b)",
        then: (Transient, Message, Reason::TooManyRecipients),
    },
    Rule {
        when: &[Rcpt],
        code: Four,
        enhanced: Any,
        words: GREYLIST,
        then: (Transient, Recipient, Reason::Greylisted),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: GREYLIST,
        then: (Transient, Message, Reason::Greylisted),
    },
    // 421 closes the channel, whatever else it says (RFC 5321 §3.8): nothing was accepted.
    Rule {
        when: TRANSACTION,
        code: Codes(&[421]),
        enhanced: Any,
        words: "time.?out|timed out|idle",
        then: (Transient, Connection, Reason::TimedOut),
    },
    Rule {
        when: TRANSACTION,
        code: Codes(&[421]),
        enhanced: Any,
        words: RATE,
        then: (Transient, Connection, Reason::RateLimited),
    },
    Rule {
        when: TRANSACTION,
        code: Codes(&[421]),
        enhanced: Any,
        words: "",
        then: (Transient, Connection, Reason::Unavailable),
    },
    // A full mailbox for now; before the server's own disk, which uses the same 452.
    Rule {
        when: &[Rcpt, Dot],
        code: Four,
        enhanced: Is(&[(2, 2)]),
        words: "",
        then: (Transient, Recipient, Reason::MailboxFull),
    },
    Rule {
        when: &[Rcpt, Dot],
        code: Four,
        enhanced: Any,
        words: r"mailbox.{0,30}full|over ?quota|(disk )?quota (is )?exceeded|mailbox.{0,40}(exceed|quota)",
        then: (Transient, Recipient, Reason::MailboxFull),
    },
    // x.3.1 and a bare 452: the disk of the relay.
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Is(&[(3, 1)]),
        words: "",
        then: (Transient, Relay, Reason::StorageFull),
    },
    Rule {
        when: TRANSACTION,
        code: Codes(&[452]),
        enhanced: Any,
        words: "storage|disk|space",
        then: (Transient, Relay, Reason::StorageFull),
    },
    Rule {
        when: &[Rcpt],
        code: Four,
        enhanced: Any,
        words: RATE,
        then: (Transient, Recipient, Reason::RateLimited),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: RATE,
        then: (Transient, Message, Reason::RateLimited),
    },
    // "Try again later" under x.7.1 is how Rspamd and others greylist without the word.
    Rule {
        when: &[Rcpt],
        code: Codes(&[450, 451]),
        enhanced: Is(&[(7, 1), (7, 0)]),
        words: "try again",
        then: (Transient, Recipient, Reason::Greylisted),
    },
    Rule {
        when: CONTENT,
        code: Codes(&[450, 451]),
        enhanced: Is(&[(7, 1)]),
        words: "try again",
        then: (Transient, Message, Reason::Greylisted),
    },
    // The relay's own tables or helpers are broken (Postfix: "Server configuration problem").
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Is(&[(3, 0), (3, 5)]),
        words: "",
        then: (Transient, Relay, Reason::SystemError),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: "configuration (problem|error)|local error|lookup (failure|error|problem)|internal (server )?error|queue file write",
        then: (Transient, Relay, Reason::SystemError),
    },
    // The recipient's domain, as the relay sees it now.
    Rule {
        when: &[Rcpt],
        code: Four,
        enhanced: Is(&[(1, 2)]),
        words: "",
        then: (Transient, Domain, Reason::DomainNotFound),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Is(&[(4, 0), (4, 1), (4, 2), (4, 3), (4, 4), (4, 7)]),
        words: "",
        then: (Transient, Domain, Reason::Network),
    },
    Rule {
        when: &[Rcpt],
        code: Four,
        enhanced: Is(&[(1, 1)]),
        words: "",
        then: (Transient, Recipient, Reason::MailboxNotFound),
    },
    Rule {
        when: &[Mail],
        code: Four,
        enhanced: Any,
        words: "",
        then: (Transient, Relay, Reason::Unavailable),
    },
    Rule {
        when: &[Rcpt],
        code: Four,
        enhanced: Any,
        words: "",
        then: (Transient, Recipient, Reason::Unavailable),
    },
    Rule {
        when: CONTENT,
        code: Four,
        enhanced: Any,
        words: "",
        then: (Transient, Message, Reason::Unavailable),
    },
];
