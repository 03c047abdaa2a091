//! What came from the other side: words, nothing, or an EHLO without what we need.

use crate::outside::smtp::Reply;

#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    Reply(&'a Reply),
    Silence(Silence),
    /// EHLO did not offer what this message or this relay's settings need.
    Lacks(Capability),
}

/// The ways in which a complete reply does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Silence {
    /// The relay's host name does not exist.
    HostNotFound,
    /// The resolver did not answer, or answered with a failure.
    DnsFailed,
    /// Nobody listens on the port.
    ConnectionRefused,
    /// No route, or the network is down.
    Unreachable,
    TimedOut,
    /// Closed or reset by the other side, half a line included.
    Closed,
    /// The handshake or the certificate failed, or a record was broken later on.
    TlsFailed,
    /// Bytes arrived between the 220 of STARTTLS and the handshake: somebody injects.
    InjectedPlaintext,
    /// Something that is no SMTP reply: no code, another protocol, too long.
    NotSmtp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// STARTTLS, although the relay's policy requires TLS.
    Tls,
    /// AUTH, or every mechanism we speak, although there are credentials.
    Auth,
    /// SMTPUTF8 (RFC 6531), although an address has a local part beyond ASCII.
    Smtputf8,
    /// 8BITMIME (RFC 6152), although the message has octets over 127.
    EightBitMime,
    /// A SIZE (RFC 1870) as large as the message.
    Size,
}
