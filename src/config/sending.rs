//! How mail goes out.

use super::{RelayNetworks, environment::machine_name, reader::Reader, value};
use crate::on_unknown::OnUnknown;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Sending {
    pub on_unknown: OnUnknown,
    /// After this time a deferred recipient has failed.
    pub retry_window: Duration,
    pub deadlines: SmtpDeadlines,
    /// Whether a relay must show a certificate that can be verified, unless it says otherwise.
    pub tls_reject_unauthorized: bool,
    pub helo_name: String,
    pub relay_networks: RelayNetworks,
}

/// How long each phase of an SMTP conversation may take (RFC 5321, 4.5.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmtpDeadlines {
    pub connect: Duration,
    pub greeting: Duration,
    pub ehlo: Duration,
    pub mail: Duration,
    pub rcpt: Duration,
    pub data: Duration,
    pub dot: Duration,
}

impl Sending {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            on_unknown: r.value(
                "POSTROOM_ON_UNKNOWN",
                "sending.on_unknown",
                "hold",
                "When a relay took the message but never confirmed: hold it, or resend it.",
                value::word(&[("hold", OnUnknown::Hold), ("resend", OnUnknown::Resend)]),
            ),
            retry_window: r.value(
                "POSTROOM_RETRY_WINDOW",
                "sending.retry_window",
                "5d",
                "How long a deferred recipient is tried again.",
                value::span(1.0..=2_592_000.0),
            ),
            deadlines: SmtpDeadlines::read(r),
            tls_reject_unauthorized: r.value(
                "SMTP_TLS_REJECT_UNAUTHORIZED",
                "sending.tls_reject_unauthorized",
                "true",
                "Whether the certificate of a relay must be valid, unless the relay says otherwise.",
                value::flag,
            ),
            helo_name: r
                .optional(
                    "POSTROOM_HELO_NAME",
                    "sending.helo_name",
                    "The name given in EHLO; without it the name of the machine.",
                    helo_name,
                )
                .unwrap_or_else(machine_name),
            relay_networks: relay_networks(r),
        }
    }
}

impl SmtpDeadlines {
    fn read(r: &mut Reader<'_>) -> Self {
        let mut phase =
            |name, key, default, doc| r.value(name, key, default, doc, value::span(0.01..=3_600.0));
        Self {
            connect: phase(
                "POSTROOM_SMTP_CONNECT_TIMEOUT",
                "sending.deadlines.connect",
                "10",
                "Seconds to connect to a relay, the TLS handshake apart.",
            ),
            greeting: phase(
                "POSTROOM_SMTP_GREETING_TIMEOUT",
                "sending.deadlines.greeting",
                "30",
                "Seconds until a relay greets.",
            ),
            ehlo: phase(
                "POSTROOM_SMTP_EHLO_TIMEOUT",
                "sending.deadlines.ehlo",
                "30",
                "Seconds until a relay answers EHLO, STARTTLS or AUTH.",
            ),
            mail: phase(
                "POSTROOM_SMTP_MAIL_TIMEOUT",
                "sending.deadlines.mail",
                "60",
                "Seconds until a relay answers MAIL.",
            ),
            rcpt: phase(
                "POSTROOM_SMTP_RCPT_TIMEOUT",
                "sending.deadlines.rcpt",
                "60",
                "Seconds until a relay answers one RCPT.",
            ),
            data: phase(
                "POSTROOM_SMTP_DATA_TIMEOUT",
                "sending.deadlines.data",
                "120",
                "Seconds until a relay answers DATA, and for each block of the message.",
            ),
            dot: phase(
                "POSTROOM_SMTP_DOT_TIMEOUT",
                "sending.deadlines.dot",
                "600",
                "Seconds until a relay confirms the message; then its fate is unknown.",
            ),
        }
    }
}

fn relay_networks(r: &mut Reader<'_>) -> RelayNetworks {
    let mut networks = |name, key, doc| {
        r.optional(name, key, doc, value::list("a network such as 10.0.0.0/8")).unwrap_or_default()
    };
    RelayNetworks {
        allow: networks(
            "POSTROOM_RELAY_ALLOW",
            "sending.relay_allow",
            "Networks that relays may be in, with commas; when empty, all. Link-local never.",
        ),
        deny: networks(
            "POSTROOM_RELAY_DENY",
            "sending.relay_deny",
            "Networks that relays may not be in, with commas.",
        ),
    }
}

/// A host name, or an address literal in brackets.
fn helo_name(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let literal = inner.is_some_and(|inner| {
        inner.strip_prefix("IPv6:").unwrap_or(inner).parse::<std::net::IpAddr>().is_ok()
    });
    let label = |label: &str| {
        let inside = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&label.len())
            && inside
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if literal || (text.len() <= 253 && text.split('.').all(label)) {
        Ok(text.to_owned())
    } else {
        Err("must be a host name in ASCII, or an address in brackets".to_owned())
    }
}
