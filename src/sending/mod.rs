//! What goes out, and what comes back of it.

pub mod messages;
pub mod outcome;
pub mod relays;
pub mod retry;
