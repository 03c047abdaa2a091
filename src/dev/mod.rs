//! What `postroom dev` sets up on one machine without any configuration: a data folder with a
//! private PostgreSQL, the keys and the first API key.
//!
//! Only what a first run needs is made here; from there on it is the same code as in production.

mod folder;
mod kept;
mod postgres;
pub mod run;

pub use folder::{default_folder, prepare};
pub use kept::{Kept, keep_secrets};
pub use postgres::Cluster;
