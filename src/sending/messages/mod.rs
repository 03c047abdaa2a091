//! A message: what a client asks for, the bytes that go out, and what becomes of them.
//!
//! Everything a request says is judged by [`SendRequest::parse`]; what passes is a [`NewMessage`],
//! and [`compose()`] turns it into bytes without a way to fail. The bytes are made once, when the
//! message is accepted (`accept.rs`, `batch/`), and every attempt sends the same (`deliver/`). `view.rs` is
//! how a message is shown, `list.rs` which are listed, `resolve.rs` a person's word on it, `decisions/` another time, an end or
//! another try for it, `dry_run.rs` what a request would come to, `wait.rs` an
//! answer that waits for the outcome.

pub mod accept;
mod batch;
mod compose;
mod decisions;
pub mod deliver;
mod dry_run;
pub mod expire;
pub mod held;
mod list;
mod mode;
mod request;
pub mod resolve;
mod routes;
mod state;
mod store;
mod test_address;
mod view;
pub mod wait;

pub use compose::{Composed, compose};
pub use deliver::Deliver;
pub use mode::Mode;
pub use request::{
    Attachment, CustomHeader, Disposition, Lifetime, MAX_RECIPIENTS, NewMessage, OnUnknown,
    Priority, Raw, RawRequest, RecipientKind, SendRequest,
};
pub use routes::router;
pub use state::{Learnt, RecipientState};
pub use store::{addressed, retained};
pub use test_address::TestAddress;

/// The kind of a message's job. Stored in every row: rename only with a migration.
pub const KIND: &str = "send";
