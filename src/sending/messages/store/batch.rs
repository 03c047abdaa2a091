//! The idempotency key of a batch, and the answer it stands for.

use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Result;

/// Whom a key belongs to.
pub enum Claimed {
    Ours,
    /// The same batch was answered so.
    Replay(Value),
    /// It stands for another request.
    Other,
}

/// Claims the key, or says what it stands for. Whoever claims it at the same time waits for the
/// end of this transaction.
pub async fn claim_key(
    conn: &mut PgConnection,
    api_key_id: Uuid,
    key: &str,
    hash: &[u8],
    batch_id: Uuid,
) -> Result<Claimed> {
    let claimed = sqlx::query!(
        "insert into idempotency_keys (api_key_id, key, request_hash, message_id, expires_at)
         values ($1, $2, $3, $4, clock_timestamp() + interval '24 hours')
         on conflict on constraint idempotency_keys_pkey do update
         set request_hash = excluded.request_hash, message_id = excluded.message_id,
             expires_at = excluded.expires_at, answer = null
         where idempotency_keys.expires_at < clock_timestamp()",
        api_key_id,
        key,
        hash,
        batch_id,
    )
    .execute(&mut *conn)
    .await?;
    if claimed.rows_affected() > 0 {
        return Ok(Claimed::Ours);
    }
    let earlier = sqlx::query!(
        "select request_hash, answer from idempotency_keys where api_key_id = $1 and key = $2",
        api_key_id,
        key,
    )
    .fetch_optional(conn)
    .await?;
    Ok(match earlier {
        Some(it) if it.request_hash == hash => it.answer.map_or(Claimed::Other, Claimed::Replay),
        _ => Claimed::Other,
    })
}

/// Keeps what the batch is answered, as long as its key.
pub async fn keep_answer(
    conn: &mut PgConnection,
    api_key_id: Uuid,
    key: &str,
    answer: &impl Serialize,
) -> Result<()> {
    sqlx::query!(
        "update idempotency_keys set answer = $3 where api_key_id = $1 and key = $2",
        api_key_id,
        key,
        serde_json::to_value(answer).unwrap_or_default(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
