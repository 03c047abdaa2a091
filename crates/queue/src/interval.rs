//! A span of time, as the database takes it.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

/// To the microsecond; what is beyond some 290,000 years is cut.
pub fn interval(duration: Duration) -> PgInterval {
    let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    PgInterval { months: 0, days: 0, microseconds }
}
