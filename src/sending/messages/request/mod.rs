//! The body of `POST /send`: its form on the wire, its rules, and what is left once they hold.
//!
//! The wire form takes any JSON value in any field, so that a wrong type is one more issue with a
//! path and not the end of the reading: the caller learns of everything that is wrong at once.
//! Types are strict (no number for a string); `null` is the same as absent.

mod attachments;
mod content;
mod fingerprint;
mod headers;
mod issues;
mod labels;
mod message;
mod options;
mod raw;
mod recipients;
mod template;
mod wire;

pub use crate::on_unknown::OnUnknown;
pub use attachments::{Attachment, Disposition};
pub use headers::CustomHeader;
pub use message::{NewMessage, RecipientKind};
pub use options::{Lifetime, Priority, send_at};
pub use raw::{Raw, RawRequest};
pub use recipients::MAX_RECIPIENTS;
pub use wire::SendRequest;

#[cfg(test)]
mod fingerprint_tests;
#[cfg(test)]
mod tests;
