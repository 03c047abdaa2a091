//! `/admin/api/pauses`.

use axum::{Json, extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{NewPause, Pause};
use crate::{
    accounts::access::{Administrator, Reader},
    error::Result,
    http::{
        extract::{Fields, Id},
        problem::Problem,
    },
    sending::Sending,
};

pub fn router(sending: Sending) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(delete)).with_state(sending)
}

/// What is paused.
#[utoipa::path(get, path = "/admin/api/pauses", tag = "pauses", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<Pause>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(State(sending): State<Sending>, Reader(_actor): Reader) -> Result<Json<Vec<Pause>>> {
    super::list(&sending.app).await.map(Json)
}

/// Pauses everything, a relay, a sender's domain or a recipient's domain.
///
/// Mail is accepted, and waits.
#[utoipa::path(post, path = "/admin/api/pauses", tag = "pauses", security(("ApiKeyAuth" = [])),
    request_body = NewPause,
    responses((status = 201, body = Pause), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn create(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Fields { value, .. }: Fields<NewPause>,
) -> Result<(StatusCode, Json<Pause>)> {
    let pause = super::create(&sending, &actor.who(), value).await?;
    Ok((StatusCode::CREATED, Json(pause)))
}

/// Resumes; what waited goes out.
#[utoipa::path(delete, path = "/admin/api/pauses/{id}", tag = "pauses", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn delete(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Id(id): Id,
) -> Result<StatusCode> {
    super::delete(&sending, &actor.who(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}
