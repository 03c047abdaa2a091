//! What a look found.

use std::time::Duration;

use serde::Serialize;

/// How long a look may take that names no other time.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// Not looked at: something else failed, or it is not used.
    Skipped,
    Warn,
    Fail,
}

/// One look at one thing. What is not well has a mending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at; the same word each time.
    pub check: &'static str,
    /// Which one, where there are several: a setting, a relay, a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub state: State,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, subject: None, state: State::Ok, found: found.into(), fix: None }
    }

    pub fn skipped(check: &'static str, why: impl Into<String>) -> Self {
        Self { state: State::Skipped, ..Self::ok(check, why) }
    }

    pub fn warn(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Warn, fix: Some(fix.into()), ..Self::ok(check, found) }
    }

    pub fn fail(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Fail, fix: Some(fix.into()), ..Self::ok(check, found) }
    }

    pub fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
}

/// The answer of a database, or what to say where it gave none in time.
pub async fn asked<T>(
    check: &'static str,
    look: impl Future<Output = crate::error::Result<T>>,
) -> Result<T, Check> {
    const FIX: &str = "look at the log and the load of PostgreSQL: a lock or a long statement may be \
                       in the way (select * from pg_stat_activity)";
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            Err(Check::fail(check, source.unwrap_or_else(|| error.to_string()), FIX))
        }
        Err(_) => {
            let found = format!("the database did not answer within {} s", PATIENCE.as_secs());
            Err(Check::fail(check, found, FIX))
        }
    }
}
