//! The small concerns of running Postroom, a few settings each.

use super::{reader::Reader, value};
use crate::secrets::SecretRing;
use secrecy::{ExposeSecret as _, SecretString};
use std::{path::PathBuf, sync::Arc, time::Duration};

#[derive(Debug, Clone)]
pub struct Secrets {
    /// Seals what is secret in the database.
    pub ring: Arc<SecretRing>,
}

#[derive(Debug, Clone)]
pub struct Metrics {
    /// Who shows it may read the metrics.
    pub token: Option<SecretString>,
    /// Whether everybody may.
    pub public: bool,
}

#[derive(Debug, Clone)]
pub struct Ready {
    /// A job that has been due for longer makes this Postroom unready; without it, age only warns.
    pub oldest_job: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct Stop {
    /// How long a stop waits for what is under way.
    pub patience: Duration,
}

#[derive(Debug, Clone)]
pub struct Sandbox {
    pub enabled: bool,
}

#[derive(Debug, Clone)]
pub struct Dev {
    /// Where `postroom dev` keeps its data, when it is not the usual place.
    pub data_folder: Option<PathBuf>,
    /// Where the programs of PostgreSQL are, when they are not in a usual place.
    pub postgres_programs: Option<PathBuf>,
}

impl Secrets {
    pub(super) fn read(r: &mut Reader<'_>) -> Option<Self> {
        let ring = r.secret(
            "POSTROOM_SECRET_KEY",
            "secrets.key",
            "The keys that seal secrets in the database: id:base64 of 32 bytes, further ones after \
             a comma; the first one seals. Required.",
            |text| SecretRing::parse(text.expose_secret()).map_err(|error| error.to_string()),
        );
        let ring = Arc::new(r.require("POSTROOM_SECRET_KEY", ring)?);
        Some(Self { ring })
    }
}

impl Metrics {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            token: r.secret(
                "METRICS_TOKEN",
                "metrics.token",
                "The bearer token that may read the metrics.",
                |text| Ok(text.clone()),
            ),
            public: r.value(
                "METRICS_PUBLIC",
                "metrics.public",
                "false",
                "Whether everybody may read the metrics.",
                value::flag,
            ),
        }
    }
}

impl Ready {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let oldest_job = r.optional(
            "POSTROOM_READY_OLDEST_JOB",
            "ready.oldest_job",
            "How long a job may be due before `/health/ready` answers 503; without it, age only warns.",
            value::span(1.0..=2_592_000.0),
        );
        Self { oldest_job }
    }
}

impl Stop {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let patience = r.value(
            "POSTROOM_STOP_PATIENCE",
            "stop.patience",
            "25s",
            "How long a stop waits for what is under way.",
            value::span(0.1..=3_600.0),
        );
        Self { patience }
    }
}

impl Sandbox {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let enabled = r.value(
            "POSTROOM_SANDBOX",
            "sandbox.enabled",
            "false",
            "Whether the built-in mail sandbox runs as a relay.",
            value::flag,
        );
        Self { enabled }
    }
}

impl Dev {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            data_folder: r.optional(
                "POSTROOM_DATA",
                "dev.data_folder",
                "Where `postroom dev` keeps its data.",
                value::parsed("a path"),
            ),
            postgres_programs: r.optional(
                "PG_BIN_DIR",
                "dev.postgres_programs",
                "Where the programs of PostgreSQL are, for `postroom dev`.",
                value::parsed("a path"),
            ),
        }
    }
}
