//! A message: what a client asks for, and the bytes that go out.
//!
//! Everything a request says is judged by [`SendRequest::parse`]; what passes is a [`NewMessage`],
//! and [`compose()`] turns it into bytes without a way to fail. The bytes are made once, when the
//! message is accepted, and every attempt sends the same.

mod compose;
mod request;

pub use compose::{Composed, compose};
pub use request::{
    Attachment, CustomHeader, Disposition, Lifetime, MAX_RECIPIENTS, NewMessage, OnUnknown,
    Priority, RecipientKind, SendRequest,
};
