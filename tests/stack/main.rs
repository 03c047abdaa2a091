//! Real processes on one real Postgres, killed while they work.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod compose;
mod container;
#[path = "../shared/database.rs"]
mod database;
mod dev;
mod docker;
mod engine;
mod faults;
mod house;
mod kill;
mod mailserver;
mod schema;
mod sink;
