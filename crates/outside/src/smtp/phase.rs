//! How far a conversation had come.

use std::fmt;

/// How far a conversation had come. The order is the order of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Dns,
    Connect,
    Tls,
    Greeting,
    Ehlo,
    Auth,
    Mail,
    Rcpt,
    /// DATA and the bytes of the message, up to but without the final dot.
    Data,
    /// The final dot was sent: from here on silence means "unknown", never "failed".
    Dot,
}

impl Phase {
    /// The word kept in `attempts.phase` and shown on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Greeting => "greeting",
            Self::Ehlo => "ehlo",
            Self::Auth => "auth",
            Self::Mail => "mail",
            Self::Rcpt => "rcpt",
            Self::Data => "data",
            Self::Dot => "dot",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
