//! `/health`, for balancers and containers.

use std::time::{Duration, Instant};

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Backlog, store};
use crate::{app::App, error::Result};

/// A database that does not answer in this time counts as away.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Watch {
    app: App,
    since: Instant,
}

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(health)).with_state(Watch { app, since: Instant::now() })
}

#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok` or `unavailable`.
    status: &'static str,
    /// Seconds since the start.
    uptime: f64,
    /// Active relays; absent while the database is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    accounts: Option<i64>,
    /// The work left; absent while the database is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Backlog>,
}

/// Whether Postroom can do its work.
#[utoipa::path(get, path = "/health", tag = "operation", security(()),
    responses((status = 200, body = Health), (status = 503, body = Health)))]
async fn health(State(Watch { app, since }): State<Watch>) -> (StatusCode, Json<Health>) {
    let uptime = since.elapsed().as_secs_f64();
    let (status, health) = match tokio::time::timeout(PATIENCE, look(&app)).await {
        Ok(Ok((accounts, queue))) => (
            StatusCode::OK,
            Health { status: "ok", uptime, accounts: Some(accounts), queue: Some(queue) },
        ),
        other => {
            if let Ok(Err(error)) = other {
                tracing::warn!(%error, "the database does not answer");
            }
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Health { status: "unavailable", uptime, accounts: None, queue: None },
            )
        }
    };
    (status, Json(health))
}

async fn look(app: &App) -> Result<(i64, Backlog)> {
    Ok((store::active_relays(&app.db).await?, store::backlog(&app.db).await?))
}
