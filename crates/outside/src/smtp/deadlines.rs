//! How long each phase may take.

use std::time::Duration;

use super::Phase;

/// The longest wait for each phase's exchange.
///
/// The defaults follow RFC 5321 §4.5.3.2 where the wait protects against a duplicate (DATA: 2
/// minutes, final dot: 10 minutes) and are shorter where giving up early costs nothing but another
/// try, so that a mute relay is left soon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlines {
    /// Name resolution, and then again for all addresses together. 10 s.
    pub connect: Duration,
    /// The TLS handshake, and the reply to STARTTLS. 30 s.
    pub tls: Duration,
    /// The greeting. 30 s.
    pub greeting: Duration,
    /// EHLO or HELO. 30 s.
    pub ehlo: Duration,
    /// Each step of AUTH. 30 s.
    pub auth: Duration,
    /// MAIL, RSET, and the write of a pipelined batch. 60 s.
    pub mail: Duration,
    /// Each RCPT. 60 s.
    pub rcpt: Duration,
    /// The reply to DATA, and the write of each piece of the message (at most 32 KiB). 120 s.
    pub data: Duration,
    /// The write of the final dot, and then its reply. 600 s.
    pub dot: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            tls: Duration::from_secs(30),
            greeting: Duration::from_secs(30),
            ehlo: Duration::from_secs(30),
            auth: Duration::from_secs(30),
            mail: Duration::from_secs(60),
            rcpt: Duration::from_secs(60),
            data: Duration::from_secs(120),
            dot: Duration::from_secs(600),
        }
    }
}

impl Deadlines {
    /// The longest wait for one exchange of `phase`.
    pub fn of(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Dns | Phase::Connect => self.connect,
            Phase::Tls => self.tls,
            Phase::Greeting => self.greeting,
            Phase::Ehlo => self.ehlo,
            Phase::Auth => self.auth,
            Phase::Mail => self.mail,
            Phase::Rcpt => self.rcpt,
            Phase::Data => self.data,
            Phase::Dot => self.dot,
        }
    }
}
