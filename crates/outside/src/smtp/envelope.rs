//! Whom a transaction is for, and whether this server can take it at all.

use super::Capabilities;

/// The envelope of one transaction.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The return path, without brackets; `None` is `<>`.
    pub sender: Option<String>,
    pub recipients: Vec<Rcpt>,
    /// Octets of the message as it is sent, without the dots of §4.5.2 (RFC 1870 §6).
    pub size: u64,
    /// Whether the header needs SMTPUTF8. Addresses that need it are found without this.
    pub smtputf8: bool,
    /// Whether the message has octets over 127: only a server with 8BITMIME takes it (RFC 6152 §3).
    pub eight_bit: bool,
    /// ENVID (RFC 3461 §4.4), as plain text. Said only where DSN is offered.
    pub envid: Option<String>,
    /// RET=HDRS (RFC 3461 §4.3). Said only where DSN is offered.
    pub ret_headers_only: bool,
}

/// One recipient.
#[derive(Debug, Clone)]
pub struct Rcpt {
    /// Without brackets.
    pub address: String,
    /// NOTIFY (RFC 3461 §4.1): `NEVER`, or some of `SUCCESS,FAILURE,DELAY`.
    pub notify: Option<String>,
    /// ORCPT (RFC 3461 §4.2): the address first written to, plain; type and coding are added here.
    pub orcpt: Option<String>,
}

/// This server cannot take the message; another might. Nothing was sent, the session is clean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotForThisRelay {
    #[error("the message is larger than the {limit} octets this relay takes")]
    TooBig { limit: u64 },
    #[error("the message needs SMTPUTF8, which this relay does not offer")]
    NoSmtpUtf8,
    #[error("the message needs 8BITMIME, which this relay does not offer")]
    NoEightBit,
}

impl Envelope {
    /// Whether the transaction must say SMTPUTF8 (RFC 6531 §3.4).
    pub fn needs_smtputf8(&self) -> bool {
        let sender = self.sender.as_deref().unwrap_or_default();
        let recipients = || self.recipients.iter().map(|rcpt| &rcpt.address);
        self.smtputf8 || !sender.is_ascii() || !recipients().all(|address| address.is_ascii())
    }

    pub(super) fn check_against(&self, offered: &Capabilities) -> Result<(), NotForThisRelay> {
        if let Some(limit) = offered.size_limit.filter(|&limit| self.size > limit) {
            return Err(NotForThisRelay::TooBig { limit });
        }
        if self.needs_smtputf8() && !offered.smtputf8 {
            return Err(NotForThisRelay::NoSmtpUtf8);
        }
        if self.eight_bit && !offered.eight_bit_mime {
            return Err(NotForThisRelay::NoEightBit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::tests::envelope;

    #[test]
    fn a_message_at_the_limit_fits_and_one_octet_more_does_not() {
        let offered = Capabilities { size_limit: Some(100), ..Capabilities::default() };
        let sized = |size| Envelope { size, ..envelope(&["a@x"]) };
        assert_eq!(sized(100).check_against(&offered), Ok(()));
        assert_eq!(sized(101).check_against(&offered), Err(NotForThisRelay::TooBig { limit: 100 }));
        assert_eq!(sized(101).check_against(&Capabilities::default()), Ok(()));
    }

    #[test]
    fn an_address_beyond_ascii_needs_smtputf8_whatever_the_caller_says() {
        let offered = Capabilities { smtputf8: true, ..Capabilities::default() };
        let envelope = envelope(&["jürgen@x"]);
        assert_eq!(envelope.check_against(&offered), Ok(()));
        let refused = envelope.check_against(&Capabilities::default());
        assert_eq!(refused, Err(NotForThisRelay::NoSmtpUtf8));
    }
}
