//! `/metrics`, for Prometheus: by a token, for everybody, or not there at all.

use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderMap, header},
    response::IntoResponse,
};
use secrecy::ExposeSecret as _;
use sqlx::PgPool;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::store;
use crate::{
    app::App,
    config,
    error::{Error, Result},
    http::problem::Problem,
    metrics::{Breaker, Kind, Pool, Relay, Snapshot, Work},
    retention::Retention,
    secrets::same_secret,
    sending::{
        Sending, messages,
        relays::{Live, Standing},
    },
};

/// A database that does not answer in this time counts as away, and the rest is shown without it.
const PATIENCE: Duration = Duration::from_secs(3);

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn router(sending: Sending, retention: Retention) -> OpenApiRouter {
    let asked = Asked { sending, retention };
    OpenApiRouter::new().routes(routes!(metrics)).with_state(asked)
}

/// Who is asked at a scrape.
#[derive(Clone)]
struct Asked {
    sending: Sending,
    retention: Retention,
}

/// What is counted, as OpenMetrics text. Needs the bearer token of `METRICS_TOKEN`, unless
/// `METRICS_PUBLIC` is set.
#[utoipa::path(get, path = "/metrics", tag = "operation", security(()),
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
        (status = 401, body = Problem),
        (status = 404, body = Problem, description = "neither a token nor METRICS_PUBLIC is set"),
    ))]
async fn metrics(State(asked): State<Asked>, headers: HeaderMap) -> Result<impl IntoResponse> {
    let Asked { sending, retention } = asked;
    let app = &sending.app;
    if !may_read(&app.config.metrics, &headers) {
        let is_there = app.config.metrics.token.is_some();
        return Err(if is_there { Error::Unauthenticated } else { Error::NotFound("Route") });
    }
    let of_database = async { Ok::<_, Error>((work(app).await?, retention.kept().await?)) };
    let (work, kept) = match tokio::time::timeout(PATIENCE, of_database).await {
        Ok(Ok((work, kept))) => (Some(work), kept),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the metrics are shown without the database");
            (None, Vec::new())
        }
        Err(_) => (None, Vec::new()),
    };
    let (pools, relays) = (pools(app), relays(&sending));
    let text = app.metrics.render(&Snapshot { pools, relays, work, kept });
    Ok(([(header::CONTENT_TYPE, TYPE)], text))
}

async fn work(app: &App) -> Result<Work> {
    let mut work = store::work(&app.db, app.queue.lease.as_secs_f64()).await?;
    // An empty queue is shown as such, and not left out.
    if !work.kinds.iter().any(|it| it.kind == messages::KIND) {
        work.kinds.push(Kind { kind: messages::KIND.to_owned(), ..Kind::default() });
    }
    Ok(work)
}

fn relays(sending: &Sending) -> Vec<Relay> {
    let known = sending.relays.living().into_iter();
    let relay = |(id, name, live): (uuid::Uuid, String, Live)| Relay {
        id: id.to_string(),
        name,
        breaker: match live.breaker {
            Standing::Closed => Breaker::Closed,
            Standing::HalfOpen => Breaker::HalfOpen,
            Standing::Open => Breaker::Open,
        },
        in_use: live.in_use,
        idle: live.idle,
        most: live.places,
    };
    known.map(relay).collect()
}

fn pools(app: &App) -> Vec<Pool> {
    let pool = |name, pool: &PgPool| Pool {
        name,
        open: pool.size(),
        idle: u32::try_from(pool.num_idle()).unwrap_or(u32::MAX),
        most: pool.options().get_max_connections(),
    };
    vec![
        pool("api", &app.db),
        pool("workers", &app.workers_db),
        pool("relaxed", app.queue.relaxed()),
    ]
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
