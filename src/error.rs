//! Every way an operation can fail, said in the caller's terms.
//!
//! This file imports nothing of ours but the queue's error, so anything may import it. It knows no HTTP: the status of
//! each variant is one `match` in `http/problem.rs`.

use serde::Serialize;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One thing that is wrong with a request, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Issue {
    /// The place in the body, dot-joined (`attachments.0.filename`); empty for the whole document.
    pub path: String,
    pub message: String,
}

impl Issue {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No key, or one that is malformed, unknown, revoked or expired: always the same answer.
    #[error("Unauthorized")]
    Unauthenticated,
    /// The key is good, and may not do this.
    #[error("{message}")]
    Forbidden { code: &'static str, message: String, required_scope: Option<&'static str> },
    /// Also for what the caller must not know of.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The request cannot be understood.
    #[error("Validation error")]
    Invalid { code: &'static str, issues: Vec<Issue> },
    /// The request is well formed, and asks for what the present state rules out.
    #[error("{message}")]
    Conflict { code: &'static str, message: String },
    /// The request is well formed, and its meaning is refused.
    #[error("{message}")]
    Refused { code: &'static str, message: String },
    /// Some recipients are on the suppression list.
    #[error("One or more recipients are suppressed")]
    Suppressed(Vec<SuppressedRecipient>),
    /// The body, or a part of it, is larger than the limit (bytes).
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the content type is not supported here: {0}")]
    UnsupportedMedia(String),
    /// A neighbour (the database, most of all) does not do its part now; trying again may help.
    #[error("{neighbour} is not available")]
    Unavailable { neighbour: &'static str, source: anyhow::Error },
    /// A neighbour failed in a way that has a name of its own.
    #[error("{message}")]
    Neighbour { failing: Failing, code: &'static str, message: String },
    #[error("the database refused")]
    Database(#[from] sqlx::Error),
}

/// How a neighbour failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// It answered, and not with what was asked.
    Wrong,
    /// It is not there.
    Away,
    /// It is there, and did not answer in time.
    Late,
}

#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct SuppressedRecipient {
    pub address: String,
    pub reason: String,
}

impl From<postroom_queue::Error> for Error {
    fn from(error: postroom_queue::Error) -> Self {
        use postroom_queue::Error::{Database, Refused, Stopping};
        let (neighbour, source) = match error {
            Database(error) => return Self::Database(error),
            Stopping => ("the writer", anyhow::anyhow!("{error}")),
            // One batch has one error and many callers: each is told what it was in words.
            Refused(why) => ("the database", anyhow::anyhow!("{why:?}")),
        };
        Self::Unavailable { neighbour, source }
    }
}

impl Error {
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { code: "VALIDATION", issues: vec![Issue::new(path, message)] }
    }

    pub fn issues(issues: Vec<Issue>) -> Self {
        Self::Invalid { code: "VALIDATION", issues }
    }

    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::Forbidden { code, message: message.into(), required_scope: None }
    }

    pub fn missing_scope(scope: &'static str) -> Self {
        let message = "Forbidden".to_owned();
        Self::Forbidden { code: "MISSING_SCOPE", message, required_scope: Some(scope) }
    }

    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::Conflict { code, message: message.into() }
    }

    pub fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into() }
    }
}

/// Turns the violation of one named constraint into the caller's error.
pub trait OnConstraint<T> {
    fn on_constraint(self, name: &str, error: impl FnOnce() -> Error) -> Result<T>;
}

impl<T> OnConstraint<T> for Result<T, sqlx::Error> {
    fn on_constraint(self, name: &str, error: impl FnOnce() -> Error) -> Result<T> {
        self.map_err(|err| match &err {
            sqlx::Error::Database(db) if db.constraint() == Some(name) => error(),
            _ => err.into(),
        })
    }
}
