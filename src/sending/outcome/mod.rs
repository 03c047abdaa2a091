//! What a relay's answer, or its silence, means for a message: one pure map.
//!
//! The order of evidence is: how far the conversation had come, the first digit of the code, the
//! enhanced code, the words. A fault of the relay never kills a message, a refusal of a recipient
//! never costs a second session, and silence after the final dot is neither: it is *unknown*.

mod classify;
mod reason;
#[cfg(test)]
mod replies;
mod rule;
mod rules;
mod said;
mod silence;
mod verdict;
mod wait;

pub use classify::classify;
pub use reason::Reason;
pub use said::{Capability, Said, Silence};
pub use verdict::{Class, Scope, Verdict};
pub use wait::wait_named;
