//! The API on a real Postgres, over real sockets: one database and one Postroom for each test.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod access;
mod alerts;
mod batch;
mod cancelling;
mod capture;
mod command_line;
mod configuration;
#[path = "../shared/database.rs"]
mod database;
mod description;
mod doctor;
mod dry_run;
mod indexes;
mod limits;
mod lists;
mod neighbours;
mod operate;
mod outcomes;
mod pauses;
mod raw;
mod recipients;
mod relays;
mod retention;
mod retrying;
mod scheduling;
mod sending;
mod support;
mod templates;
mod test_recipients;
mod truth;
mod waiting;
mod wire;
