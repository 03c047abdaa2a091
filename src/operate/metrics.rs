//! `/metrics`, for Prometheus: by a token, for everybody, or not there at all.

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::IntoResponse,
};
use secrecy::ExposeSecret as _;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    config,
    error::{Error, Result},
    http::problem::Problem,
    secrets::same_secret,
};

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn router(app: App) -> OpenApiRouter {
    OpenApiRouter::new().routes(routes!(metrics)).with_state(app)
}

/// What is counted, as OpenMetrics text. Needs the bearer token of `METRICS_TOKEN`, unless
/// `METRICS_PUBLIC` is set.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()),
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 401, body = Problem),
        (status = 404, body = Problem, description = "neither a token nor METRICS_PUBLIC is set"),
        (status = 503, body = Problem),
    ))]
async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<impl IntoResponse> {
    if !may_read(&app.config.metrics, &headers) {
        let is_there = app.config.metrics.token.is_some();
        return Err(if is_there { Error::Unauthenticated } else { Error::NotFound("Route") });
    }
    let backlog = super::backlog(&app.db).await?;
    let text = app.metrics.render(backlog.depth, backlog.oldest_seconds);
    Ok(([(header::CONTENT_TYPE, TYPE)], text))
}

fn may_read(settings: &config::Metrics, headers: &HeaderMap) -> bool {
    let shown = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let known = settings.token.as_ref().map(|token| token.expose_secret());
    settings.public
        || matches!((shown, known), (Some(shown), Some(known)) if same_secret(shown, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_or_a_public_setting_opens() {
        let settings =
            |token: Option<&str>, public| config::Metrics { token: token.map(Into::into), public };
        let with =
            |value: &str| HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
        assert!(may_read(&settings(Some("sesame"), false), &with("Bearer sesame")));
        assert!(may_read(&settings(None, true), &HeaderMap::new()));
        assert!(!may_read(&settings(Some("sesame"), false), &with("Bearer other")));
        assert!(!may_read(&settings(Some("sesame"), false), &with("Basic sesame")));
        assert!(!may_read(&settings(Some("sesame"), false), &HeaderMap::new()));
        assert!(!may_read(&settings(None, false), &with("Bearer ")));
    }
}
