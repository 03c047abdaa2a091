//! The SQL of `suppressions`.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Suppression;
use crate::error::Result;

/// Writes one; answers whether it was not there.
pub(super) async fn insert(conn: &mut PgConnection, new: &Suppression) -> Result<bool> {
    let done = sqlx::query!(
        "insert into suppressions (suppression_id, lookup_key, reason, source, note, created_at)
         values ($1, $2, $3, $4, $5, coalesce($6, clock_timestamp()))
         on conflict on constraint suppressions_lookup_key_key do nothing",
        Uuid::now_v7(),
        new.lookup_key,
        new.reason,
        new.source,
        new.note,
        new.created_at,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// The one of an address.
pub(super) async fn of(db: &PgPool, lookup_key: &str) -> Result<Option<Suppression>> {
    let found = sqlx::query_as!(
        Suppression,
        r#"select lookup_key, reason, source, note, created_at as "created_at?" from suppressions
           where lookup_key = $1"#,
        lookup_key,
    )
    .fetch_optional(db)
    .await?;
    Ok(found)
}

/// Takes one away; answers whether it was there.
pub(super) async fn delete(conn: &mut PgConnection, lookup_key: &str) -> Result<bool> {
    let done = sqlx::query!("delete from suppressions where lookup_key = $1", lookup_key)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}
