//! Everything beyond our walls. An adapter defines the input it needs; it never learns a feature's type.

pub mod dns;
pub mod docker;
pub mod smtp;
