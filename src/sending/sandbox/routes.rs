//! `/sandbox/messages`.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{SandboxMessage, store};
use crate::{
    accounts::access::{Administrator, AnyKey},
    app::App,
    error::{Error, Result},
    http::{
        extract::{Id, Query},
        page::{Page, PageQuery},
        problem::Problem,
    },
};

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, clear))
        .routes(routes!(get))
        .routes(routes!(raw))
        .with_state(app)
}

/// What the sandbox received, newest first.
#[utoipa::path(get, path = "/sandbox/messages", tag = "sandbox", security(("ApiKeyAuth" = [])), params(PageQuery),
    responses((status = 200, body = Vec<SandboxMessage>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(
    State(app): State<App>,
    AnyKey(actor): AnyKey,
    Query(page): Query<PageQuery>,
) -> Result<Page<SandboxMessage>> {
    let limit = page.limit()?;
    let mut rows = store::list(&app.db, actor.sees(), page.cursor, limit + 1).await?;
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > wanted;
    rows.truncate(wanted);
    let next = rows.last().filter(|_| more).map(|row| row.id);
    let items = rows.into_iter().map(|row| SandboxMessage::new(row, false)).collect();
    Ok(Page { items, path: "/sandbox/messages", limit, next, filters: String::new() })
}

/// One message, parsed.
#[utoipa::path(get, path = "/sandbox/messages/{id}", tag = "sandbox", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = SandboxMessage), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(app): State<App>,
    AnyKey(actor): AnyKey,
    Id(id): Id,
) -> Result<Json<SandboxMessage>> {
    let row = store::one(&app.db, actor.sees(), id).await?.ok_or(Error::NotFound("Message"))?;
    Ok(Json(SandboxMessage::new(row, true)))
}

/// One message, as it came over the wire.
#[utoipa::path(get, path = "/sandbox/messages/{id}/raw", tag = "sandbox", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, content_type = "message/rfc822", body = String), (status = "4XX", body = Problem),
              (status = 503, body = Problem)))]
async fn raw(State(app): State<App>, AnyKey(actor): AnyKey, Id(id): Id) -> Result<Response> {
    let row = store::one(&app.db, actor.sees(), id).await?.ok_or(Error::NotFound("Message"))?;
    Ok(([(header::CONTENT_TYPE, "message/rfc822")], row.raw).into_response())
}

/// Empties the sandbox.
#[utoipa::path(delete, path = "/sandbox/messages", tag = "sandbox", security(("ApiKeyAuth" = [])),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn clear(State(app): State<App>, Administrator(_actor): Administrator) -> Result<StatusCode> {
    store::clear(&app.db).await?;
    Ok(StatusCode::NO_CONTENT)
}
