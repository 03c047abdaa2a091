//! Where the database is, and how much of it we take.

use super::{reader::Reader, value};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgConnectOptions;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Database {
    pub url: SecretString,
    /// Connections for requests.
    pub api_connections: u32,
    /// Connections for work in the background, apart so that neither starves the other.
    pub worker_connections: u32,
    pub statement_timeout: Duration,
}

impl Database {
    pub(super) fn read(r: &mut Reader<'_>) -> Option<Self> {
        let url = r.secret(
            "DATABASE_URL",
            "database.url",
            "The PostgreSQL database, as postgres://user:password@host:port/name. Required.",
            url,
        );
        let url = r.require("DATABASE_URL", url);
        let api_connections = r.value(
            "POSTROOM_DATABASE_API_CONNECTIONS",
            "database.api_connections",
            "10",
            "Database connections for requests, at most.",
            value::whole(1..=1_000),
        );
        let worker_connections = r.value(
            "POSTROOM_DATABASE_WORKER_CONNECTIONS",
            "database.worker_connections",
            "10",
            "Database connections for work in the background, at most.",
            value::whole(1..=1_000),
        );
        let statement_timeout = r.value(
            "POSTROOM_DATABASE_STATEMENT_TIMEOUT",
            "database.statement_timeout",
            "30s",
            "How long one statement may run.",
            value::span(0.1..=3_600.0),
        );
        Some(Self { url: url?, api_connections, worker_connections, statement_timeout })
    }
}

fn url(text: &SecretString) -> Result<SecretString, String> {
    let url = text.expose_secret();
    let scheme = url.starts_with("postgres://") || url.starts_with("postgresql://");
    if !scheme || url.parse::<PgConnectOptions>().is_err() {
        return Err("must be a URL of the form postgres://user:password@host:port/name".to_owned());
    }
    Ok(text.clone())
}
