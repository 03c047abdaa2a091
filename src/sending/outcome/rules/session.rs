//! Before MAIL: every refusal, 5xx too, is a fault of the relay. Only the reason differs.

use super::super::rule::Code::{Five, Four, Is as Codes, Negative};
use super::super::rule::Enhanced::{Any, Is};
use super::super::rule::{Code, Enhanced, Rule};
use super::{ANY, SESSION};
use crate::outside::smtp::Phase::{self, Auth, Ehlo, Greeting, Tls};
use crate::sending::outcome::{Class::RelayFault, Reason, Scope::Relay};

const fn fault(
    when: &'static [Phase],
    code: Code,
    enhanced: Enhanced,
    words: &'static str,
    reason: Reason,
) -> Rule {
    Rule { when, code, enhanced, words, then: (RelayFault, Relay, reason) }
}

pub(super) const RULES: &[Rule] = &[
    // RFC 4954 §6: 530 means "log in first", and RFC 3207 §4 uses it for "STARTTLS first". Both
    // may come as late as RCPT, and never speak of the recipient.
    fault(ANY, Codes(&[530]), Any, r"\btls\b|starttls|encrypt|\bssl\b", Reason::TlsRequired),
    fault(ANY, Codes(&[530]), Any, "", Reason::AuthRequired),
    // RFC 7504 §3: 521 says that the host takes no mail at all.
    fault(ANY, Codes(&[521]), Any, "not? accept|no (mail|smtp)", Reason::NoMailService),
    // RFC 4954 §6: 538 and x.7.11, encryption is needed for this mechanism.
    fault(&[Auth], Codes(&[538]), Any, "", Reason::TlsRequired),
    fault(&[Auth], Negative, Is(&[(7, 11)]), "", Reason::TlsRequired),
    // Exchange Online counts connections at AUTH (432 4.3.2).
    fault(&[Auth], Negative, Any, "concurren", Reason::RateLimited),
    // Credits that ran out are told at AUTH by some providers, as 4xx or 5xx.
    fault(&[Auth], Negative, Any, r"credit|\bquota\b|limit exceeded", Reason::QuotaExceeded),
    fault(
        &[Auth],
        Five,
        Any,
        "suspend|deactivat|account.{0,40}(disabled|blocked|locked)|not (yet )?activated",
        Reason::AccountSuspended,
    ),
    // A brake on logins, or a password that must be renewed (RFC 4954 §6: 432 4.7.12): asking
    // again soon makes it worse, so it counts like a refused password.
    fault(&[Auth], Negative, Any, "too many.{0,30}(login|auth|fail)", Reason::AuthFailed),
    fault(&[Auth], Codes(&[432]), Any, "", Reason::AuthFailed),
    fault(&[Auth], Four, Any, "too many|connection limit|rate limit", Reason::RateLimited),
    // RFC 4954 §6: 454 4.7.0, the server cannot check credentials now.
    fault(&[Auth], Four, Any, "", Reason::AuthUnavailable),
    // RFC 4954 §4: 504, and 5.5.4 or 5.5.1, this mechanism or AUTH itself is not known here.
    fault(&[Auth], Codes(&[502, 504]), Any, "", Reason::AuthNotOffered),
    fault(
        &[Auth],
        Five,
        Any,
        "not (available|enabled|implemented|supported|advertised)|unrecogni[sz]ed (command|auth)|mechanism",
        Reason::AuthNotOffered,
    ),
    // RFC 4954 §4: 503, already logged in; the two sides are out of step.
    fault(&[Auth], Codes(&[503]), Any, "", Reason::ProtocolError),
    // 535 5.7.8, 534 5.7.9, 5.7.14 and whatever else: the login failed.
    fault(&[Auth], Five, Any, "", Reason::AuthFailed),
    // RFC 3207 §4: 454 TLS not available; a 5xx is no better.
    fault(&[Tls], Negative, Any, "", Reason::TlsFailed),
    fault(
        SESSION,
        Negative,
        Any,
        r"too many|concurren|connection (limit|rate)|rate.?limit|max(imum)? (number of )?connections",
        Reason::RateLimited,
    ),
    fault(SESSION, Negative, Any, r"reverse|\bptr\b|rdns", Reason::MissingPtr),
    fault(
        SESSION,
        Negative,
        Any,
        r"block|\bblack|listed|spamhaus|\brbl\b|dnsbl|reputation|banned|denied",
        Reason::IpBlocked,
    ),
    // RFC 5321 §4.1.4 forbids refusing a name that does not resolve; many do all the same.
    fault(&[Ehlo], Five, Any, r"\b(helo|ehlo|host ?name|fqdn)\b", Reason::HeloRefused),
    fault(&[Ehlo], Codes(&[501, 550]), Any, "", Reason::HeloRefused),
    fault(&[Ehlo], Codes(&[500, 502, 504]), Any, "", Reason::ProtocolError),
    // RFC 5321 §3.1: a 554 greeting, no SMTP service here.
    fault(&[Greeting], Codes(&[521, 554, 556]), Any, "", Reason::NoMailService),
    fault(SESSION, Four, Any, "", Reason::Unavailable),
    fault(SESSION, Five, Any, "", Reason::Refused),
];
