//! `/admin/api/smtp-accounts`.

use axum::{Json, extract::State, http::StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    NewRelay, RelayPatch, RelayView,
    probe::{Report, probe},
};
use crate::{
    accounts::access::{Administrator, Reader},
    error::Result,
    http::{
        extract::{Fields, Id, WithIgnored},
        problem::Problem,
    },
    sending::Sending,
};

pub fn router(sending: Sending) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(test))
        .with_state(sending)
}

/// All relays, the first to be asked first, each with how it is now.
#[utoipa::path(get, path = "/admin/api/smtp-accounts", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<RelayView>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
) -> Result<Json<Vec<RelayView>>> {
    let relays = super::list(&sending.app).await?;
    Ok(Json(relays.into_iter().map(|it| it.lives(&sending.relays)).collect()))
}

/// Makes a relay. It is used at once.
#[utoipa::path(post, path = "/admin/api/smtp-accounts", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    request_body = NewRelay,
    responses((status = 201, body = RelayView), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn create(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Fields { value, ignored }: Fields<NewRelay>,
) -> Result<(StatusCode, Json<WithIgnored<RelayView>>)> {
    let body = super::create(&sending.app, &actor.who(), value).await?;
    sending.refresh().await;
    let body = body.lives(&sending.relays);
    Ok((StatusCode::CREATED, Json(WithIgnored { body, ignored })))
}

/// One relay.
#[utoipa::path(get, path = "/admin/api/smtp-accounts/{id}", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = RelayView), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
    Id(id): Id,
) -> Result<Json<RelayView>> {
    super::get(&sending.app, id).await.map(|it| Json(it.lives(&sending.relays)))
}

/// Changes a relay: any of its fields.
#[utoipa::path(patch, path = "/admin/api/smtp-accounts/{id}", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)), request_body = RelayPatch,
    responses((status = 200, body = RelayView), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn update(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Id(id): Id,
    Fields { value, .. }: Fields<RelayPatch>,
) -> Result<Json<RelayView>> {
    let body = super::update(&sending.app, &actor.who(), id, value).await?;
    sending.refresh().await;
    Ok(Json(body.lives(&sending.relays)))
}

/// Removes a relay.
#[utoipa::path(delete, path = "/admin/api/smtp-accounts/{id}", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn delete(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Id(id): Id,
) -> Result<StatusCode> {
    super::delete(&sending.app, &actor.who(), id).await?;
    sending.refresh().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries a relay: speaks with it up to the login, and tells each phase.
///
/// Nothing is sent, and it need not be active. A relay that fails is a result; a second trial at
/// the same time is refused with 409.
#[utoipa::path(post, path = "/admin/api/smtp-accounts/{id}/test", tag = "smtp-accounts", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Report), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn test(
    State(sending): State<Sending>,
    Administrator(_actor): Administrator,
    Id(id): Id,
) -> Result<Json<Report>> {
    probe(&sending.relays, id).await.map(Json)
}
