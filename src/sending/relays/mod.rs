//! Which relay a message may leave by, and how many at once.

pub mod breaker;
pub mod eligible;
pub mod slots;
