//! Names of domains, mail addresses, and addresses with a display name: parsed once, at the door.
//!
//! A value of these types is safe to put into an SMTP command, a header or a file of the mail
//! server: no control character, no comment, no group, no route, one spelling of the domain.
//! Whoever checks a policy must check the parsed value and send that same value; the text it was
//! parsed from is not kept.

mod chars;
mod domain;
mod email;
mod mailbox;
mod mailbox_parser;

pub(crate) use chars::is_invisible_control;
pub use domain::DomainName;
pub use email::EmailAddress;
pub use mailbox::Mailbox;

/// Why a text is not an address. Says the rule, never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("an address has the form local@domain")]
    Form,
    #[error("the part before the @ is not valid")]
    Local,
    #[error("the part before the @ is longer than 64 octets")]
    LocalTooLong,
    #[error("the address is longer than 254 octets")]
    TooLong,
    #[error("the domain is not valid")]
    Domain,
    #[error("the name must not contain control characters")]
    ControlInName,
    #[error("the name must be quoted")]
    Name,
    #[error("a quote is not closed")]
    OpenQuote,
}
