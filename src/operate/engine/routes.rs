//! `/admin/api/engine`.

use axum::{Json, extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Container, Restarted};
use crate::{
    accounts::access::{Administrator, Reader},
    app::App,
    error::Result,
    http::{extract::IdOrName, problem::Problem},
};

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(restart)).with_state(app)
}

/// The containers around Postroom, and how they are.
///
/// One that the engine does not know has the state `missing`.
#[utoipa::path(get, path = "/admin/api/engine/containers", tag = "engine", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<Container>), (status = "4XX", body = Problem),
        (status = 502, description = "Docker refuses", body = Problem),
        (status = 503, description = "Docker or the database is away", body = Problem),
        (status = 504, description = "Docker does not answer", body = Problem)))]
async fn list(State(app): State<App>, Reader(_actor): Reader) -> Result<Json<Vec<Container>>> {
    super::list(&app).await.map(Json)
}

/// Restarts a container, and answers when it runs again.
///
/// It has 60 s for its end. A client that leaves does not stop it halfway.
#[utoipa::path(post, path = "/admin/api/engine/containers/{name}/restart", tag = "engine",
    security(("ApiKeyAuth" = [])), params(("name" = String, Path)),
    responses((status = 202, body = Restarted), (status = "4XX", body = Problem),
        (status = 502, description = "Docker refuses", body = Problem),
        (status = 503, description = "Docker or the database is away", body = Problem),
        (status = 504, description = "Docker does not answer", body = Problem)))]
async fn restart(
    State(app): State<App>,
    Administrator(actor): Administrator,
    IdOrName(name): IdOrName,
) -> Result<(StatusCode, Json<Restarted>)> {
    let restarted = super::restart(&app, &actor.who(), &name).await?;
    Ok((StatusCode::ACCEPTED, Json(restarted)))
}
