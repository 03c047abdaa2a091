//! The one place where an [`Error`] becomes a status and a JSON body: `{error, code, issues?}`.
//!
//! 500 does not exist: what a neighbour fails to do is 502, 503 or 504, with its name.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Error, Failing, Issue, SuppressedRecipient};

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, ToSchema)]
pub struct Problem {
    /// For a person.
    pub error: String,
    /// For a program; in capitals, and stable.
    pub code: &'static str,
    /// What is wrong with the request, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    /// The scope that the key lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_scope: Option<&'static str>,
    /// The recipients that are suppressed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<SuppressedRecipient>,
}

impl Problem {
    pub fn new(code: &'static str, error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            code,
            issues: Vec::new(),
            required_scope: None,
            suppressed: Vec::new(),
        }
    }
}

/// The status and the body of an error.
pub fn of(error: Error) -> (StatusCode, Problem) {
    let text = error.to_string();
    match error {
        Error::Unauthenticated => (StatusCode::UNAUTHORIZED, Problem::new("UNAUTHORIZED", text)),
        Error::Forbidden { code, required_scope, .. } => {
            (StatusCode::FORBIDDEN, Problem { required_scope, ..Problem::new(code, text) })
        }
        Error::NotFound(_) => (StatusCode::NOT_FOUND, Problem::new("NOT_FOUND", text)),
        Error::Invalid { code, issues } => {
            (StatusCode::BAD_REQUEST, Problem { issues, ..Problem::new(code, text) })
        }
        Error::Conflict { code, .. } => (StatusCode::CONFLICT, Problem::new(code, text)),
        Error::Refused { code, .. } => (StatusCode::UNPROCESSABLE_ENTITY, Problem::new(code, text)),
        Error::Suppressed(suppressed) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            Problem { suppressed, ..Problem::new("RECIPIENTS_SUPPRESSED", text) },
        ),
        Error::TooLarge { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, Problem::new("BODY_TOO_LARGE", text))
        }
        Error::UnsupportedMedia(_) => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, Problem::new("UNSUPPORTED_MEDIA_TYPE", text))
        }
        Error::Neighbour { failing, code, .. } => {
            tracing::warn!(code, error = text, "a neighbour failed");
            let status = match failing {
                Failing::Wrong => StatusCode::BAD_GATEWAY,
                Failing::Away => StatusCode::SERVICE_UNAVAILABLE,
                Failing::Late => StatusCode::GATEWAY_TIMEOUT,
            };
            (status, Problem::new(code, text))
        }
        Error::Unavailable { source, .. } => unavailable(text, &*source),
        Error::Database(sqlx::Error::Database(refusal)) if is_about_data(&*refusal) => (
            StatusCode::BAD_REQUEST,
            Problem::new("OUT_OF_RANGE", "a value is out of the range that can be kept"),
        ),
        Error::Database(source) => unavailable("the database is not available".into(), &source),
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (status, problem) = of(self);
        let mut response = (status, Json(problem)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, 5.into());
        }
        response
    }
}

/// Class 22 of SQLSTATE, data exception: a value that passed our own checks and fits no column.
fn is_about_data(refusal: &dyn sqlx::error::DatabaseError) -> bool {
    refusal.code().is_some_and(|code| code.starts_with("22"))
}

fn unavailable(text: String, source: &(dyn std::error::Error + 'static)) -> (StatusCode, Problem) {
    tracing::error!(error = source, "a neighbour failed");
    (StatusCode::SERVICE_UNAVAILABLE, Problem::new("UNAVAILABLE", text))
}
