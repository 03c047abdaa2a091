//! `/admin/api/limits`.

use axum::{Json, extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Limit, NewLimit, Standing};
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
    OpenApiRouter::new().routes(routes!(list, put)).routes(routes!(delete)).with_state(sending)
}

/// All limits, with what is left of each.
#[utoipa::path(get, path = "/admin/api/limits", tag = "limits", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<Standing>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
) -> Result<Json<Vec<Standing>>> {
    super::list(&sending.app).await.map(Json)
}

/// Sets a limit: at most so many recipients a minute, an hour or a day. What is over it waits, and
/// goes out by itself.
#[utoipa::path(put, path = "/admin/api/limits", tag = "limits", security(("ApiKeyAuth" = [])),
    request_body = NewLimit,
    responses((status = 200, body = Limit), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn put(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Fields { value, .. }: Fields<NewLimit>,
) -> Result<Json<Limit>> {
    let limit = super::put(&sending, &actor.who(), value).await?;
    Ok(Json(limit))
}

/// Takes a limit away; what waits for it goes out.
#[utoipa::path(delete, path = "/admin/api/limits/{id}", tag = "limits", security(("ApiKeyAuth" = [])),
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
