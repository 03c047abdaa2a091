//! `/admin/api/templates`.

use axum::{Extension, Json, extract::State, http::StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{
    NewTemplate, TemplateContent, TemplatePatch, TemplateView, VersionView, trial,
    wire::{Preview, PreviewRequest, TestRequest, TestSent},
};
use crate::{
    accounts::{
        access::{Administrator, Reader},
        api_keys::Scope,
    },
    error::{Error, Result},
    http::{
        extract::{BodyLimit, Fields, IdOrName, Query},
        page::{Page, PageQuery},
        problem::Problem,
    },
    sending::Sending,
};

/// Two parts of 512 KiB, each character written as JSON may write it.
const BODY: usize = 8 * 1024 * 1024;

pub fn router(sending: Sending) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, archive))
        .routes(routes!(versions))
        .routes(routes!(preview))
        .routes(routes!(test))
        .layer(Extension(BodyLimit(BODY)))
        .with_state(sending)
}

/// The templates in use, newest first; without their bodies.
#[utoipa::path(get, path = "/admin/api/templates", tag = "templates", security(("ApiKeyAuth" = [])), params(PageQuery),
    responses((status = 200, body = Vec<TemplateView>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn list(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
    Query(page): Query<PageQuery>,
) -> Result<Page<TemplateView>> {
    let limit = page.limit()?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut items = super::list(&sending.app, page.cursor, limit + 1).await?;
    let more = items.len() > most;
    items.truncate(most);
    let next = items.last().filter(|_| more).map(|it| it.id);
    Ok(Page { items, path: "/admin/api/templates", limit, next, filters: String::new() })
}

/// Makes a template; its content is version 1.
#[utoipa::path(post, path = "/admin/api/templates", tag = "templates", security(("ApiKeyAuth" = [])),
    request_body = NewTemplate,
    responses((status = 201, body = TemplateContent), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn create(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    Fields { value, .. }: Fields<NewTemplate>,
) -> Result<(StatusCode, Json<TemplateContent>)> {
    let made = super::create(&sending.app, &actor.who(), value).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The current one if absent.
    version: Option<i32>,
}

/// One template, by its id or its slug, with the content of a version. By its id also an archived one.
#[utoipa::path(get, path = "/admin/api/templates/{id}", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path), Which),
    responses((status = 200, body = TemplateContent), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
    IdOrName(id): IdOrName,
    Query(which): Query<Which>,
) -> Result<Json<TemplateContent>> {
    super::get(&sending.app, &id, which.version).await.map(Json)
}

/// Changes a template. Other content is a new version; those before it can still be used by number.
#[utoipa::path(patch, path = "/admin/api/templates/{id}", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path)), request_body = TemplatePatch,
    responses((status = 200, body = TemplateContent), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn update(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    IdOrName(id): IdOrName,
    Fields { value, .. }: Fields<TemplatePatch>,
) -> Result<Json<TemplateContent>> {
    super::update(&sending.app, &actor.who(), &id, value).await.map(Json)
}

/// Archives a template: it is used no more, and its slug is free. Messages made of it are unaffected.
#[utoipa::path(delete, path = "/admin/api/templates/{id}", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path)),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn archive(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    IdOrName(id): IdOrName,
) -> Result<StatusCode> {
    super::archive(&sending.app, &actor.who(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Every version of a template, the newest first; without their bodies.
#[utoipa::path(get, path = "/admin/api/templates/{id}/versions", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = Vec<VersionView>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn versions(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
    IdOrName(id): IdOrName,
) -> Result<Json<Vec<VersionView>>> {
    super::versions(&sending.app, &id).await.map(Json)
}

/// Renders a template with data, and says what is missing in it. Nothing is sent.
#[utoipa::path(post, path = "/admin/api/templates/{id}/preview", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path)), request_body = PreviewRequest,
    responses((status = 200, body = Preview), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn preview(
    State(sending): State<Sending>,
    Reader(_actor): Reader,
    IdOrName(id): IdOrName,
    Fields { value, .. }: Fields<PreviewRequest>,
) -> Result<Json<Preview>> {
    super::preview(&sending.app, &id, value).await.map(Json)
}

/// Sends a message made of a template, as `POST /send` would. The key needs the scope `send` too.
#[utoipa::path(post, path = "/admin/api/templates/{id}/test", tag = "templates", security(("ApiKeyAuth" = [])),
    params(("id" = String, Path)), request_body = TestRequest,
    responses((status = 202, body = TestSent), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn test(
    State(sending): State<Sending>,
    Administrator(actor): Administrator,
    IdOrName(id): IdOrName,
    Fields { value, .. }: Fields<TestRequest>,
) -> Result<(StatusCode, Json<TestSent>)> {
    if !actor.has(Scope::Send) {
        return Err(Error::missing_scope(Scope::Send.as_str()));
    }
    let id: Uuid = trial::send(&sending, &actor, &id, value).await?;
    Ok((StatusCode::ACCEPTED, Json(TestSent { ok: true, id })))
}
