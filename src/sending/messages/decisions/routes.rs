//! `PATCH /jobs/{id}`, `POST /jobs/{id}/cancel`, `POST /jobs/{id}/retry`, `POST /jobs/retry`.

use axum::{Json, extract::State};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Reschedule,
    bulk::{self, BulkRetry, Retried},
};
use crate::{
    accounts::access::AnyKey,
    error::Result,
    http::{
        extract::{Fields, Id},
        problem::Problem,
    },
    sending::{
        Sending,
        messages::{routes::one, view::Job},
    },
};

pub fn router(sending: Sending) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(reschedule))
        .routes(routes!(cancel))
        .routes(routes!(retry))
        .routes(routes!(retry_many))
        .with_state(sending)
}

/// Gives a message that waits for its first attempt another time to go out; null is now.
#[utoipa::path(patch, path = "/jobs/{id}", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)), request_body = Reschedule,
    responses((status = 200, body = Job), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn reschedule(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
    Fields { value, .. }: Fields<Reschedule>,
) -> Result<Json<Job>> {
    super::reschedule(&sending.app, &actor, id, &value).await?;
    one(&sending, actor.sees(), id).await.map(Json)
}

/// Cancels what still waits; recipients already sent to stay so. 409 when nothing waits.
#[utoipa::path(post, path = "/jobs/{id}/cancel", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Job), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn cancel(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
) -> Result<Json<Job>> {
    super::cancel(&sending.app, &actor, id).await?;
    sending.work.outcomes.tell([id]);
    one(&sending, actor.sees(), id).await.map(Json)
}

/// Tries again.
///
/// Failed and expired recipients, and those suppressed that are so no longer, as if they were new;
/// those that wait for a later try, now. Never those that are sent, unknown or cancelled. 409 when
/// there is nothing to try again.
#[utoipa::path(post, path = "/jobs/{id}/retry", tag = "sending", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Job), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn retry(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
) -> Result<Json<Job>> {
    super::retry(&sending.app, &actor, id).await?;
    one(&sending, actor.sees(), id).await.map(Json)
}

/// Tries again what the filter finds.
///
/// With an administrator's key of all messages, else of the key's own.
#[utoipa::path(post, path = "/jobs/retry", tag = "sending", security(("ApiKeyAuth" = [])),
    request_body = BulkRetry,
    responses((status = 200, body = Retried), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn retry_many(
    State(sending): State<Sending>,
    AnyKey(actor): AnyKey,
    Fields { value, .. }: Fields<BulkRetry>,
) -> Result<Json<Retried>> {
    bulk::retry(&sending.app, &actor, &value).await.map(Json)
}
