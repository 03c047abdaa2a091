//! The SMTP conversation of a client that must know what became of every recipient.
//!
//! Our own small client over tokio and rustls: every phase has its deadline, every recipient its
//! reply, and a fault says how far the conversation had come. Each exchange takes the connection
//! out of the [`Session`] and puts it back only when both sides agree where they stand; so a fault,
//! or a call that was dropped half-way, closes the connection, and nothing can use it again.
//!
//! Reading order: [`Endpoint`] and [`Deadlines`], [`Session`], [`Envelope`] and [`Begun`],
//! [`Fault`].

mod auth;
mod body;
mod capabilities;
mod commands;
mod connect;
mod deadlines;
mod endpoint;
mod envelope;
mod fault;
mod phase;
mod reply;
#[cfg(test)]
mod scripted;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod transaction;
mod wire;

pub use capabilities::{AuthMechanism, Capabilities};
pub use deadlines::Deadlines;
pub use endpoint::{Credentials, Endpoint};
pub use envelope::{Envelope, NotForThisRelay, Rcpt};
pub use fault::{Fault, FaultKind};
pub use phase::Phase;
pub use reply::{EnhancedCode, Reply};
pub use session::Session;
pub use tls::{TlsInfo, TlsMode, TlsPolicy, TlsVersion};
pub use transaction::{Answer, Begun, Refusal};
