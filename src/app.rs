//! What every request and every job can reach.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use crate::{
    config::Config, metrics::Metrics, outside::docker::Engine, queue::Queue, secrets::SecretRing,
};

/// Cheap to clone: every field is a handle.
#[derive(Clone)]
pub struct App {
    pub config: Arc<Config>,
    /// For requests; the workers have their own pool, so that neither starves the other.
    pub db: PgPool,
    /// For workers.
    pub workers_db: PgPool,
    pub queue: Arc<Queue>,
    pub secrets: Arc<SecretRing>,
    pub metrics: Arc<Metrics>,
    /// The one way into a container.
    pub engine: Arc<Engine>,
}

impl App {
    pub fn now(&self) -> DateTime<Utc> {
        now()
    }
}

/// The only reader of the clock. Due times and leases do not use it: they are the database's.
#[expect(clippy::disallowed_methods, reason = "the one reader of the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
