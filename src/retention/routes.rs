//! `/admin/api/retention`.

use axum::{
    Json,
    extract::{FromRef, State},
    http::StatusCode,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Retained, Retention, RetentionRun, store, view};
use crate::{
    accounts::access::{Administrator, Reader},
    app::App,
    error::{Error, Result},
    http::{extract::Id, problem::Problem},
};

impl FromRef<Retention> for App {
    fn from_ref(retention: &Retention) -> Self {
        retention.app.clone()
    }
}

/// How many of the last runs are shown.
const SHOWN: i64 = 10;

pub fn router(retention: Retention) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(get))
        .routes(routes!(run))
        .routes(routes!(get_run))
        .with_state(retention)
}

/// What is kept how long, and what went.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RetentionOverview {
    classes: Vec<Retained>,
    /// The last ten runs, the newest first.
    runs: Vec<RetentionRun>,
}

/// How long what is kept, how much of it there is, what a run would forget now, and the last runs.
#[utoipa::path(get, path = "/admin/api/retention", tag = "retention", security(("ApiKeyAuth" = [])),
    responses((status = 200, body = RetentionOverview), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get(
    State(retention): State<Retention>,
    Reader(_actor): Reader,
) -> Result<Json<RetentionOverview>> {
    let db = &retention.app.db;
    let mut classes = Vec::with_capacity(retention.classes.len());
    for class in retention.classes.iter() {
        classes.push(view::retained(db, class).await?);
    }
    Ok(Json(RetentionOverview { classes, runs: store::runs(db, SHOWN).await? }))
}

/// Starts a run now, beside the timetable. 409 while one is under way.
#[utoipa::path(post, path = "/admin/api/retention/run", tag = "retention", security(("ApiKeyAuth" = [])),
    responses((status = 202, body = RetentionRun), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn run(
    State(retention): State<Retention>,
    Administrator(actor): Administrator,
) -> Result<(StatusCode, Json<RetentionRun>)> {
    Ok((StatusCode::ACCEPTED, Json(retention.ask(&actor.who()).await?)))
}

/// One run: how far it is, or how it ended.
#[utoipa::path(get, path = "/admin/api/retention/runs/{id}", tag = "retention", security(("ApiKeyAuth" = [])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = RetentionRun), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
async fn get_run(
    State(retention): State<Retention>,
    Reader(_actor): Reader,
    Id(id): Id,
) -> Result<Json<RetentionRun>> {
    let run = store::run(&retention.app.db, id).await?;
    run.map(Json).ok_or(Error::NotFound("retention run"))
}
