//! A pooler that hands out server connections by transaction: behind it, what a session has set is
//! lost, LISTEN hears nothing, and prepared statements are gone.
//!
//! It does not say that it is there, so it is caught in the act: a session sets a mark; two others
//! hold transactions open, so that the server connection of the first is taken; then the
//! first looks for its mark.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use super::Check;
use crate::{config, database, operate::store};

const CHECK: &str = "database.pooler";
/// With all server connections taken, a pooler lets the first session wait.
const PATIENCE: Duration = Duration::from_secs(4);
const FIX: &str = "point DATABASE_URL at PostgreSQL itself, or let the pooler pool by session \
                   (pool_mode = session)";

pub async fn check(settings: &config::Database, first: &mut PgConnection) -> Check {
    match tokio::time::timeout(PATIENCE, is_mark_kept(settings, first)).await {
        Ok(Ok(true)) => Check::ok(CHECK, "a session keeps what it sets"),
        Ok(Ok(false)) => Check::fail(
            CHECK,
            "a pooler in transaction mode is in the way: a session does not keep what it sets",
            FIX,
        ),
        Ok(Err(error)) if is_about_prepared(&error) => in_the_way(&words(&error)),
        Ok(Err(error)) => Check::warn(
            CHECK,
            format!("it could not be found out: {error}"),
            "look whether the server lets three more connections in",
        ),
        Err(_) => Check::warn(
            CHECK,
            "a session waited for others: a pooler, or a server at its limit, is in the way",
            FIX,
        ),
    }
}

async fn is_mark_kept(
    settings: &config::Database,
    first: &mut PgConnection,
) -> Result<bool, sqlx::Error> {
    let options =
        database::options(settings).map_err(|error| sqlx::Error::Configuration(error.into()))?;
    store::set_mark(first).await?;
    let mut second = PgConnection::connect_with(&options).await?;
    let mut held = second.begin().await?;
    store::mark(&mut held).await?;
    let mut third = PgConnection::connect_with(&options).await?;
    let mut held_too = third.begin().await?;
    store::mark(&mut held_too).await?;
    let kept = store::mark(first).await?;
    held.rollback().await?;
    held_too.rollback().await?;
    Ok(kept.as_deref() == Some(store::MARK))
}

fn is_about_prepared(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(it) if matches!(it.code().as_deref(), Some("26000" | "42P05")))
}

/// Whether somebody between us and the server did not want what a server takes.
pub fn refuses_options(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(it) if it.message().contains("unsupported startup parameter"))
}

/// What the pooler said.
pub fn words(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(it) => it.message().to_owned(),
        other => other.to_string(),
    }
}

pub fn in_the_way(said: &str) -> Check {
    Check::fail(CHECK, format!("a pooler is in the way: {said}"), FIX)
}
