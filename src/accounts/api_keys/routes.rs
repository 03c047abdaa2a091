//! `/admin/api/api-keys`.

use axum::{Json, extract::State, http::StatusCode};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{Key, KeyPatch, NewKey, Scope};
use crate::{
    accounts::access::{Administrator, Reader},
    app::App,
    error::Result,
    http::{
        extract::{Fields, Id, WithIgnored},
        problem::Problem,
    },
};

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(update, revoke))
        .with_state(app)
}

/// A key just made. `plain` is shown this once.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MadeKey {
    id: Uuid,
    name: String,
    prefix: String,
    scopes: Vec<Scope>,
    expires_at: Option<DateTime<Utc>>,
    /// The key itself: 64 hexadecimal characters.
    plain: String,
}

/// All keys, revoked ones too.
#[utoipa::path(get, path = "/admin/api/api-keys", tag = "api-keys", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = Vec<Key>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(State(app): State<App>, Reader(_actor): Reader) -> Result<Json<Vec<Key>>> {
    super::list(&app).await.map(Json)
}

/// Makes a key.
#[utoipa::path(post, path = "/admin/api/api-keys", tag = "api-keys", security(("ApiKeyAuth" = [])),
    request_body = NewKey,
    responses((status = 201, body = MadeKey), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn create(
    State(app): State<App>,
    Administrator(actor): Administrator,
    Fields { value, ignored }: Fields<NewKey>,
) -> Result<(StatusCode, Json<WithIgnored<MadeKey>>)> {
    let (key, plain) = super::create(&app, &actor.who(), value).await?;
    let Key { id, name, prefix, scopes, expires_at, .. } = key;
    let body = MadeKey { id, name, prefix, scopes, expires_at, plain };
    Ok((StatusCode::CREATED, Json(WithIgnored { body, ignored })))
}

/// Changes a key.
#[utoipa::path(patch, path = "/admin/api/api-keys/{id}", tag = "api-keys", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)), request_body = KeyPatch,
    responses((status = 200, body = Key), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn update(
    State(app): State<App>,
    Administrator(actor): Administrator,
    Id(id): Id,
    Fields { value, ignored }: Fields<KeyPatch>,
) -> Result<Json<WithIgnored<Key>>> {
    let body = super::update(&app, &actor.who(), id, value).await?;
    Ok(Json(WithIgnored { body, ignored }))
}

/// Revokes a key, for good.
#[utoipa::path(delete, path = "/admin/api/api-keys/{id}", tag = "api-keys", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn revoke(
    State(app): State<App>,
    Administrator(actor): Administrator,
    Id(id): Id,
) -> Result<StatusCode> {
    super::revoke(&app, &actor.who(), id).await?;
    Ok(StatusCode::NO_CONTENT)
}
