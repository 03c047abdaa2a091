//! What of messages is kept for a time: each file brings the statements of one class.
//!
//! What has not settled is never among it. Messages are gone through by their ids, which begin with
//! the time of their making, so that no batch looks at what is young. The bound is of `now()`: one of
//! `clock_timestamp()` would be asked anew for every row, and could not bound the index.

pub mod content;
pub mod keys;
pub mod messages;
