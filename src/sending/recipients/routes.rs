//! `/admin/api/recipients/{address}`.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    address, erase,
    view::{Erased, Erasure, Held},
};
use crate::{
    accounts::access::{Administrator, Reader},
    app::App,
    error::Result,
    http::{
        extract::{Fields, IdOrName, Query},
        page::{self, PageQuery},
        problem::Problem,
    },
};

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(erase_all)).with_state(app)
}

/// What is kept of an address that mail was sent to.
#[utoipa::path(get, path = "/admin/api/recipients/{address}", tag = "recipients", security(("ApiKeyAuth" = [])),
    params(("address" = String, Path), PageQuery),
    responses((status = 200, body = Held), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(app): State<App>,
    Reader(_actor): Reader,
    IdOrName(text): IdOrName,
    Query(query): Query<PageQuery>,
) -> Result<Response> {
    let limit = query.limit()?;
    let mut held = super::held(&app, &address(&text)?, query.cursor, limit + 1).await?;
    let is_more = held.messages.len() > limit as usize;
    held.messages.truncate(limit as usize);
    let next = held.messages.last().map(|it| it.id).filter(|_| is_more);
    let mut response = Json(held).into_response();
    if let Some(next) = next {
        page::link(&mut response, &format!("?cursor={next}&limit={limit}"));
    }
    Ok(response)
}

/// Erases what is kept of an address, except of messages that have not settled.
///
/// In its place stands an alias. The content of messages to it is gone for their other recipients
/// too. Its suppression stays, unless `suppression` says otherwise.
#[utoipa::path(post, path = "/admin/api/recipients/{address}/erase", tag = "recipients", security(("ApiKeyAuth" = [])),
    params(("address" = String, Path)), request_body = Erasure,
    responses((status = 200, body = Erased), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn erase_all(
    State(app): State<App>,
    Administrator(actor): Administrator,
    IdOrName(text): IdOrName,
    Fields { value, ignored: _ }: Fields<Erasure>,
) -> Result<Json<Erased>> {
    erase::erase(&app, &actor.who(), &address(&text)?, &value).await.map(Json)
}
