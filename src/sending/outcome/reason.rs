//! Why: a closed vocabulary, kept in `attempts` and shown on the wire.
//!
//! The groups are those by which bounce reports are sorted, so that a refusal in the session and
//! one that comes back as a report are counted together.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal in $group:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $variant,)* }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The group of the bounce vocabulary this reason belongs to.
            pub fn group(self) -> &'static str {
                match self { $(Self::$variant => $group,)* }
            }
        }
    };
}

reasons! {
    /// The step succeeded.
    Accepted = "accepted" in "none",
    /// No such mailbox.
    MailboxNotFound = "mailbox_not_found" in "address",
    /// The mailbox has moved (551, x.1.6).
    MailboxMoved = "mailbox_moved" in "address",
    /// The recipient's address breaks the syntax (x.1.3).
    AddressMalformed = "address_malformed" in "address",
    /// The recipient's domain does not exist or has no mail host.
    DomainNotFound = "domain_not_found" in "domain",
    /// The recipient's domain takes no mail (null MX, RFC 7505; 556, RFC 7504).
    DomainRefusesMail = "domain_refuses_mail" in "domain",
    /// The mailbox exists and is switched off.
    MailboxInactive = "mailbox_inactive" in "inactive",
    /// The mailbox is over its quota.
    MailboxFull = "mailbox_full" in "full",
    /// Larger than the relay takes.
    MessageTooBig = "message_too_big" in "size",
    /// The relay keeps a suppression list of its own, and the recipient is on it.
    SuppressedByRelay = "suppressed_by_relay" in "suppressed",
    /// The address the mail comes from is listed, or has a bad name.
    IpBlocked = "ip_blocked" in "block",
    /// The address the mail comes from has no matching reverse name.
    MissingPtr = "missing_ptr" in "block",
    /// This sender is not wanted, whoever brings the mail.
    SenderRefused = "sender_refused" in "block",
    /// The sender's address breaks the syntax (x.1.7).
    SenderMalformed = "sender_malformed" in "block",
    /// The relay cannot find the sender's domain (x.1.8).
    SenderDomainNotFound = "sender_domain_not_found" in "block",
    /// Taken for spam.
    SpamContent = "spam_content" in "content",
    /// Taken for malware.
    Virus = "virus" in "content",
    /// A part of the content is not allowed.
    ContentRefused = "content_refused" in "content",
    /// The message breaks RFC 5322 or MIME.
    MessageMalformed = "message_malformed" in "content",
    /// A rule of the receiving side, not said which.
    Policy = "policy" in "content",
    /// SPF, DKIM or DMARC failed for the sender's domain.
    SenderAuthentication = "sender_authentication" in "auth",
    /// The relay does not carry mail from us to there.
    RelayDenied = "relay_denied" in "relay",
    /// The relay cannot be used as it is set up: its credentials are not to be had, or its address
    /// is one that relays may not have.
    RelayMisconfigured = "relay_misconfigured" in "relay",
    /// The relay refused the credentials.
    AuthFailed = "auth_failed" in "relay",
    /// The relay wants a login first (530).
    AuthRequired = "auth_required" in "relay",
    /// The relay offers no login, or none we speak.
    AuthNotOffered = "auth_not_offered" in "relay",
    /// The relay cannot check credentials now.
    AuthUnavailable = "auth_unavailable" in "relay",
    /// The relay wants TLS first.
    TlsRequired = "tls_required" in "relay",
    /// TLS is missing, or failed.
    TlsFailed = "tls_failed" in "relay",
    /// The relay does not like our name in EHLO.
    HeloRefused = "helo_refused" in "relay",
    /// The host is no mail relay, or not for us (521, 554 greeting).
    NoMailService = "no_mail_service" in "relay",
    /// The relay's account may not send.
    AccountSuspended = "account_suspended" in "relay",
    /// The relay's account may not send as this sender.
    SenderNotOwned = "sender_not_owned" in "relay",
    /// The address needs SMTPUTF8 (RFC 6531), the relay lacks it.
    Smtputf8Missing = "smtputf8_missing" in "relay",
    /// The message has octets over 127 (RFC 6152), the relay lacks 8BITMIME.
    EightBitMissing = "eight_bit_missing" in "relay",
    /// The relay does not know a parameter of MAIL or RCPT (555).
    OptionUnsupported = "option_unsupported" in "relay",
    /// The relay's account is over its quota or daily limit.
    QuotaExceeded = "quota_exceeded" in "rate",
    /// Too much in too short a time.
    RateLimited = "rate_limited" in "rate",
    /// Too many recipients in one transaction (452 4.5.3).
    TooManyRecipients = "too_many_recipients" in "rate",
    /// Asked to come back later, as a test.
    Greylisted = "greylisted" in "transient",
    /// The message runs in a circle.
    MailLoop = "mail_loop" in "transient",
    /// The server is out of disk space (x.3.1).
    StorageFull = "storage_full" in "transient",
    /// The server has a fault of its own (x.3.x).
    SystemError = "system_error" in "transient",
    /// Not now, and not said why.
    Unavailable = "unavailable" in "transient",
    /// The relay's own host name does not exist.
    HostNotFound = "host_not_found" in "transient",
    /// The connection failed, or a later hop could not be reached.
    Network = "network" in "transient",
    /// No answer within the deadline.
    TimedOut = "timed_out" in "transient",
    /// What was said does not follow RFC 5321, or came out of step.
    ProtocolError = "protocol_error" in "transient",
    /// Refused for good, and not said why.
    Refused = "refused" in "undefined",
}

impl Reason {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
    }

    /// Whether trying again soon would look like guessing a password: servers ban for that.
    pub fn is_about_credentials(self) -> bool {
        matches!(self, Self::AuthFailed | Self::AccountSuspended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_snake_case_and_leads_back_to_its_reason() {
        for reason in Reason::ALL {
            let name = reason.as_str();
            assert!(name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase() || b == b'8'));
            assert_eq!(Reason::parse(name), Some(*reason));
        }
    }
}
