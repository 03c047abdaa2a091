//! For whoever runs Postroom: is it well, and how much is there to do.

pub mod doctor;
pub mod engine;
pub mod health;
pub mod metrics;
pub mod probe;
pub mod ready;
mod store;

pub use store::Backlog;
