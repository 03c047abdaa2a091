//! The map of Postroom, from the ground up.
//!
//! * **Ground**: [`error`], [`config`], [`address`], [`secrets`], [`on_unknown`], [`telemetry`],
//!   [`metrics`], [`database`]; two packages of their own in `crates/`, [`outside`] (everything beyond our walls: the
//!   SMTP client) and [`queue`] (durable work); [`upkeep`] (chores), [`events`] (the outbox), [`audit`], [`app`] (what
//!   everyone can reach), [`http`] (plumbing that knows no feature).
//! * **[`accounts`]**: who may come in. The access rules are [`accounts::access`].
//! * **[`sending`]**: what goes out. Its page is the state machine; read it before its code.
//! * **[`retention`]**: what is kept for a time, and then forgotten.
//! * **[`operate`]**: health, metrics, the doctor, containers. **[`surface`]**: the API's description.
//! * **[`transfer`]**: what an operator brings along from elsewhere.
//! * **The roof**: [`router`] (table of contents), [`background`] (timetable), [`serve`] (start and stop), [`dev`] (everything
//!   on one machine), [`cli`].
//!
//! Imports run down only; `tests/architecture.rs` holds it.

pub use postroom_outside as outside;
pub use postroom_queue::{self as queue, interval};

pub mod accounts;
pub mod address;
pub mod app;
pub mod audit;
pub mod background;
pub mod cli;
pub mod config;
pub mod database;
pub mod dev;
pub mod error;
pub mod events;
pub mod http;
pub mod metrics;
pub mod on_unknown;
pub mod operate;
pub mod retention;
pub mod router;
pub mod secrets;
pub mod sending;
pub mod serve;
pub mod surface;
pub mod telemetry;
pub mod transfer;
pub mod upkeep;
