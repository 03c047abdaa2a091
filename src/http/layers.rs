//! What every request passes through: an id, a log line, security headers, a net for panics.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use uuid::Uuid;

use crate::{error::Error, metrics::Metrics};

/// The id of a request: the caller's own where it is harmless, else a new one.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// A request that takes longer has met a neighbour that does not answer. What it began may still
/// come to be: an `Idempotency-Key` finds out.
const PATIENCE: Duration = Duration::from_secs(120);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const SECURITY: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'self';script-src 'self';style-src 'self';img-src 'self' data:;font-src 'self' data:;\
         connect-src 'self';object-src 'none';base-uri 'self';form-action 'self';frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    ("referrer-policy", "no-referrer"),
    ("strict-transport-security", "max-age=31536000; includeSubDomains"),
    ("x-content-type-options", "nosniff"),
    ("x-dns-prefetch-control", "off"),
    ("x-download-options", "noopen"),
    ("x-frame-options", "DENY"),
    ("x-permitted-cross-domain-policies", "none"),
    ("x-xss-protection", "0"),
    ("cache-control", "no-store"),
];

/// Wraps the whole router.
pub fn wrap(router: Router, metrics: Arc<Metrics>) -> Router {
    router
        .fallback(async || Error::NotFound("Route"))
        .method_not_allowed_fallback(async || {
            let problem = super::problem::Problem::new("METHOD_NOT_ALLOWED", "Method not allowed");
            (axum::http::StatusCode::METHOD_NOT_ALLOWED, axum::Json(problem))
        })
        .layer(CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| {
            Error::Unavailable {
                neighbour: "this operation",
                source: anyhow::anyhow!("a handler panicked"),
            }
            .into_response()
        }))
        .layer(middleware::from_fn_with_state(metrics, around))
}

async fn around(State(metrics): State<Arc<Metrics>>, mut request: Request, next: Next) -> Response {
    let id = RequestId(
        request
            .headers()
            .get(&REQUEST_ID)
            .and_then(|given| given.to_str().ok())
            .filter(|given| is_harmless(given))
            .map_or_else(|| Uuid::new_v4().to_string(), str::to_owned),
    );
    let route =
        request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    // The route as written, never the URL: a query may hold what no log should.
    let span = tracing::info_span!("request", request.id = %id.0, http.method = %method, http.route = %route);
    request.extensions_mut().insert(id.clone());
    let begun = Instant::now();
    let answered = tokio::time::timeout(PATIENCE, next.run(request).instrument(span.clone())).await;
    let mut response = answered.unwrap_or_else(|_| {
        let source = anyhow::anyhow!("no answer within {PATIENCE:?}");
        Error::Unavailable { neighbour: "the database", source }.into_response()
    });
    let took = begun.elapsed();
    metrics.http.answered(method.as_str(), &route, response.status().as_u16(), took);
    span.in_scope(|| {
        tracing::info!(
            http.status = response.status().as_u16(),
            ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    });
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, id);
    }
    for (name, value) in SECURITY {
        headers
            .entry(HeaderName::from_static(name))
            .or_insert_with(|| HeaderValue::from_static(value));
    }
    response
}

fn is_harmless(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(&byte))
}
