//! The API on a real Postgres, over real sockets: one database and one Postroom for each test.

mod access;
mod sending;
mod support;
