//! From MAIL on: what the relay refuses because of itself, its account or its address.

use super::super::rule::Code::{Five, Four, Is as Codes, Negative};
use super::super::rule::Enhanced::{Any, Is, Range};
use super::super::rule::Rule;
use super::{CONTENT, TRANSACTION};
use crate::outside::smtp::Phase::{Data, Dot, Mail, Rcpt};
use crate::sending::outcome::Class::{MessagePermanent, RelayFault, Transient};
use crate::sending::outcome::Reason;
use crate::sending::outcome::Scope::{Connection, Message, Relay, RelayAndSender};

/// The address mail comes from is on a list, or has a bad name.
const LISTED: &str = r"blocked using|spamhaus|spamcop|barracuda|sorbs|proofpoint|dnsbl|\brbls?\b|black.?list|block.?list|banned (sending )?ip|\b(ip|host|network|server|client)\b.{0,80}(blocked|banned|listed|reputation|block list)|blocked.{0,30}\bip\b|reputation|^ip=";

pub(super) const RULES: &[Rule] = &[
    // Exchange Online: the tenant or the user sent spam and may not send any more.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(1, 8), (7, 501), (7, 502), (7, 503)]),
        words: "outbound|banned sender|spam abuse",
        then: (RelayFault, RelayAndSender, Reason::AccountSuspended),
    },
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Any,
        words: r"(sending|outbound|outgoing)( mail| email)?( is| has been| was)?( temporarily)? (disabled|paused|suspended|blocked|deactivated)|your (\w+ ){0,3}account.{0,60}(suspend|disabled|blocked|deactivat|locked|not (yet )?activated|under review)|account.{0,40}(disabled|blocked|suspended|not allowed|not permitted) (from|to) send|unusual sending activity|domain is disabled",
        then: (RelayFault, Relay, Reason::AccountSuspended),
    },
    // Quota and daily limit of the relay's account: a 4xx is as common as a 5xx, and another
    // relay has its own account.
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Any,
        words: r"(daily|hourly|monthly|sending|outgoing|outbound|submission|24.?hour)( \w+){0,3} (quota|limit|limits|allowance)( \w+){0,3} (exceeded|reached|hit|over)|(exceeded|reached|over) (your|the|its|maximum)( \w+){0,2} (daily|hourly|monthly|sending|outgoing|outbound|submission)|credits? (exceeded|exhausted|expired|used)|(no|not enough|insufficient) credits?|messages? per (hour|day|month)",
        then: (RelayFault, Relay, Reason::QuotaExceeded),
    },
    // Exchange Online 5.7.705 and 5.7.708: the tenant's threshold, and a trial's address range.
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Is(&[(7, 705)]),
        words: "",
        then: (RelayFault, Relay, Reason::QuotaExceeded),
    },
    // A rate of the account (Amazon SES: "Throttling failure", "Maximum sending rate").
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Any,
        words: "throttling failure|maximum sending rate",
        then: (RelayFault, Relay, Reason::RateLimited),
    },
    // The relay wants a login that the session has not: 550 or 503 instead of 530.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(7, 57)]),
        words: "",
        then: (RelayFault, Relay, Reason::AuthRequired),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"(smtp )?auth(entication)? (is )?required|(must|requires?|please)( \w+){0,2} (auth\b|authenticat|log ?in)|not (logged in|authenticated)|auth(enticate)? first|log ?in first|client not auth",
        then: (RelayFault, Relay, Reason::AuthRequired),
    },
    // TLS wanted for the rest of the session (x.7.10, or 554 "must issue STARTTLS").
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: "must issue (a )?starttls|(tls|encryption)( is)? (required|needed)",
        then: (RelayFault, Relay, Reason::TlsRequired),
    },
    // The relay does not carry mail from us, or from this domain, to there. Another sender of the
    // same relay may be served, so only this pair is at fault.
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Is(&[(7, 54), (7, 64)]),
        words: "",
        then: (RelayFault, RelayAndSender, Reason::RelayDenied),
    },
    Rule {
        when: TRANSACTION,
        code: Negative,
        enhanced: Any,
        words: r"relay(ing)?( access)?( is)? (denied|not (permitted|allowed|authori[sz]ed)|prohibited|refused)|unable to relay|(cannot|can't|not|don't|do not|won't)( \w+)? relay\b|rcpthosts|no relay(ing)?\b|relay attempt",
        then: (RelayFault, RelayAndSender, Reason::RelayDenied),
    },
    // Postfix with `permit_sasl_authenticated, reject` on a session that is not let in.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: "client host rejected: access denied|client was not authenticated",
        then: (RelayFault, Relay, Reason::RelayDenied),
    },
    // A list of web addresses or of domains names what is in the message, not who brings it.
    Rule {
        when: CONTENT,
        code: Five,
        enhanced: Any,
        words: r"\b(ur[il]|link)s?\b.{0,80}(listed|block|black)|surbl|uribl|\bdbl\b",
        then: (MessagePermanent, Message, Reason::SpamContent),
    },
    Rule {
        when: &[Mail, Rcpt],
        code: Five,
        enhanced: Any,
        words: r"\bdbl\b|(sender|mail ?from).{0,60}(black.?list|block.?list|listed)",
        then: (MessagePermanent, Message, Reason::SenderRefused),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"reputation of the (sending|sender) domain|domain.{0,20} reputation",
        then: (MessagePermanent, Message, Reason::SenderRefused),
    },
    // Our relay's own address is listed: nothing is wrong with the recipient, and another relay
    // has another address. A 4xx says the same, for now.
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: r"reverse (dns|host|lookup|name)|\bptr\b|\brdns\b|cannot find your (reverse )?host|ip name lookup failed",
        then: (RelayFault, Relay, Reason::MissingPtr),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(7, 25)]),
        words: "",
        then: (RelayFault, Relay, Reason::MissingPtr),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Range(7, 606, 649),
        words: "",
        then: (RelayFault, Relay, Reason::IpBlocked),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Is(&[(7, 511), (7, 708)]),
        words: "",
        then: (RelayFault, Relay, Reason::IpBlocked),
    },
    Rule {
        when: TRANSACTION,
        code: Five,
        enhanced: Any,
        words: LISTED,
        then: (RelayFault, Relay, Reason::IpBlocked),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: r"reverse (dns|host|lookup|name)|\bptr\b|\brdns\b|cannot find your (reverse )?host|ip name lookup failed",
        then: (Transient, Relay, Reason::MissingPtr),
    },
    Rule {
        when: TRANSACTION,
        code: Four,
        enhanced: Any,
        words: LISTED,
        then: (Transient, Relay, Reason::IpBlocked),
    },
    // Out of step, or an echo of a MAIL or RCPT that was refused before (pipelining, RFC 2920):
    // the earlier reply decides; this one must not kill what it does not speak of.
    Rule {
        when: TRANSACTION,
        code: Codes(&[503]),
        enhanced: Any,
        words: "",
        then: (Transient, Connection, Reason::ProtocolError),
    },
    Rule {
        when: &[Data, Dot],
        code: Five,
        enhanced: Any,
        words: "no valid recipients|no recipients|need rcpt|valid rcpt",
        then: (Transient, Connection, Reason::ProtocolError),
    },
    // A server that does not know MAIL, RCPT or DATA is no relay.
    Rule {
        when: &[Mail, Rcpt, Data],
        code: Codes(&[500, 502]),
        enhanced: Any,
        words: "",
        then: (RelayFault, Relay, Reason::ProtocolError),
    },
];
