//! Every route, in one place; the OpenAPI document is made of the same definition.

use axum::{Json, Router, routing::get};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    accounts,
    app::App,
    http::layers,
    operate,
    retention::{self, Retention},
    sending::{self, Sending},
    surface,
};

/// The whole HTTP service.
pub fn router(app: &App, sending: &Sending, retention: &Retention) -> Router {
    let (router, document) = routes(app, sending, retention).split_for_parts();
    let document = surface::openapi::complete(document);
    let document = get(async move || Json(document.clone()));
    layers::wrap(router.route("/openapi.json", document), app.metrics.clone())
}

/// The document of what [`router`] serves.
pub fn openapi(app: &App, sending: &Sending, retention: &Retention) -> OpenApi {
    surface::openapi::complete(routes(app, sending, retention).into_openapi())
}

fn routes(app: &App, sending: &Sending, retention: &Retention) -> OpenApiRouter {
    OpenApiRouter::with_openapi(surface::openapi::base())
        .merge(operate::health::router(app.clone()))
        .merge(operate::ready::router(app.clone()))
        .merge(operate::metrics::router(sending.clone(), retention.clone()))
        .merge(operate::engine::router(app.clone()))
        .merge(retention::router(retention.clone()))
        .merge(accounts::api_keys::router(app.clone()))
        .merge(sending::relays::router(sending.clone()))
        .merge(sending::pauses::router(sending.clone()))
        .merge(sending::limits::router(sending.clone()))
        .merge(sending::templates::router(sending.clone()))
        .merge(sending::recipients::router(app.clone()))
        .merge(sending::messages::router(sending.clone()))
        // Without a sandbox too: keys that capture keep their messages there.
        .merge(sending::sandbox::router(app.clone()))
}
