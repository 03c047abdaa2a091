//! Why a conversation ended before its time, and where.

use std::{io, time::Duration};

use super::{Phase, Reply};

/// A conversation that broke off. The connection is closed.
#[derive(Debug, thiserror::Error)]
#[error("the SMTP conversation broke off at {phase}")]
pub struct Fault {
    pub phase: Phase,
    #[source]
    pub kind: FaultKind,
}

/// What broke a conversation off. Never holds a secret, nor a command that was sent.
#[derive(Debug, thiserror::Error)]
pub enum FaultKind {
    /// The host has no address, or the resolver failed.
    #[error("the host name did not resolve")]
    Resolve(#[source] io::Error),
    /// The network said no; `ConnectionRefused` among it.
    #[error("the network failed")]
    Io(#[source] io::Error),
    /// Nothing came, or nothing could be written, for this long.
    #[error("no progress for {0:?}")]
    TimedOut(Duration),
    /// The other side closed or reset the connection.
    #[error("the other side closed the connection")]
    Closed,
    /// The handshake failed, a bad certificate among the causes.
    #[error("TLS failed")]
    Tls(#[source] io::Error),
    /// What the server said is not SMTP, or we called out of turn.
    #[error("against the protocol: {0}")]
    Protocol(String),
    /// What we were asked to say cannot be said safely. Nothing of it was written.
    #[error("cannot be put on the wire: {0}")]
    Malformed(&'static str),
    /// The server refused with 4xx or 5xx where that ends the conversation, or said 421 anywhere.
    #[error("the server said {0}")]
    Reply(Reply),
    /// There are credentials, and no mechanism we speak is offered.
    #[error("the server offers neither AUTH PLAIN nor AUTH LOGIN")]
    AuthNotOffered,
    /// TLS is required, and STARTTLS is not offered.
    #[error("the server does not offer STARTTLS")]
    TlsNotOffered,
    /// The password would have crossed a network in clear.
    #[error("AUTH without TLS is not allowed here")]
    ClearAuthRefused,
    /// Bytes stood behind the reply to STARTTLS, in clear (RFC 3207 §6, CVE-2011-0411).
    #[error("bytes were injected before the TLS handshake")]
    InjectedBytes,
}

impl Fault {
    pub(super) fn new(phase: Phase, kind: FaultKind) -> Self {
        Self { phase, kind }
    }

    pub(super) fn protocol(phase: Phase, what: impl Into<String>) -> Self {
        Self { phase, kind: FaultKind::Protocol(what.into()) }
    }

    /// A reply that ends the conversation: a refusal, or something that makes no sense here.
    pub(super) fn reply(phase: Phase, reply: Reply) -> Self {
        if reply.is_refusal() {
            Self { phase, kind: FaultKind::Reply(reply) }
        } else {
            Self::protocol(phase, format!("unexpected reply {}", reply.code))
        }
    }

    /// All the ways in which a peer goes away are one kind.
    pub(super) fn io(phase: Phase, error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let kind = match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof => FaultKind::Closed,
            _ => FaultKind::Io(error),
        };
        Self { phase, kind }
    }

    /// Whether the message may have been taken although nobody said so: the final dot was (perhaps)
    /// sent, and no reply to it was read.
    pub fn is_unknown(&self) -> bool {
        self.phase == Phase::Dot && !matches!(self.kind, FaultKind::Reply(_))
    }
}
