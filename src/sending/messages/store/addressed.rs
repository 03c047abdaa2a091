//! Messages by whom they are for: what is kept of them, and what remains when that is erased.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::lock_messages;
use crate::error::Result;

/// At most this many messages in one transaction, so that no lock is held for long.
const BATCH: i64 = 200;

/// A message to an address.
#[derive(Debug)]
pub struct Row {
    pub message_id: Uuid,
    pub internet_id: String,
    pub created_at: DateTime<Utc>,
    pub from_header: String,
    pub subject: String,
    pub field: String,
    pub state: String,
    pub tries: i32,
    pub code: Option<i16>,
    pub enhanced: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub next_at: Option<DateTime<Utc>>,
    pub settled_at: Option<DateTime<Utc>>,
}

/// Those behind `before`, the newest first.
pub async fn page(
    db: &PgPool,
    lookup_key: &str,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select message_id, internet_id, created_at, from_header, subject, field, state, tries, code, enhanced, reason,
                  text, next_at, recipients.settled_at
           from recipients join messages using (message_id)
           where lookup_key = $1 and ($2::uuid is null or message_id < $2)
           order by message_id desc limit $3"#,
        lookup_key,
        before,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// How many there are, by the state of the recipient.
pub async fn count(db: &PgPool, lookup_key: &str) -> Result<BTreeMap<String, i64>> {
    let rows = sqlx::query!(
        r#"select state, count(*) as "count!" from recipients where lookup_key = $1 group by state"#,
        lookup_key,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.state, row.count)).collect())
}

/// How this address was written, in all its spellings.
pub async fn spellings(conn: &mut PgConnection, lookup_key: &str) -> Result<Vec<String>> {
    let found = sqlx::query_scalar!(
        "select distinct address from recipients where lookup_key = $1",
        lookup_key,
    )
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// What replaces an erased address is made with this.
pub async fn salt(db: &PgPool) -> Result<String> {
    let salt = sqlx::query_scalar!("select value from installation where name = 'erasure_salt'");
    Ok(salt.fetch_one(db).await?)
}

/// Some of the messages to an address.
pub struct Batch {
    /// The last of them; none if there are no more.
    pub last: Option<Uuid>,
    /// Those that were erased.
    pub erased: Vec<Uuid>,
    /// Those that have not settled, and were left alone.
    pub open: usize,
}

/// Erases what the next messages behind `last` hold for an address: their content and header, what
/// servers said, and the address itself, in whose place stands `alias`. Only of messages that have
/// settled.
pub async fn erase(
    conn: &mut PgConnection,
    lookup_key: &str,
    alias: &str,
    last: Option<Uuid>,
) -> Result<Batch> {
    let ids = sqlx::query_scalar!(
        "select distinct message_id from recipients
         where lookup_key = $1 and ($2::uuid is null or message_id > $2) order by message_id limit $3",
        lookup_key,
        last,
        BATCH,
    )
    .fetch_all(&mut *conn)
    .await?;
    let settled = lock_messages(conn, &ids).await?;
    let erased: Vec<Uuid> =
        ids.iter().copied().filter(|id| settled.get(id).copied().unwrap_or(false)).collect();
    sqlx::query!("delete from message_content where message_id = any($1)", &erased)
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "update attempt_recipients set text = null
         where attempt_id in (select attempt_id from attempts where message_id = any($1))",
        &erased,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("update attempts set text = null where message_id = any($1)", &erased)
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "update messages set to_header = '', cc_header = '', reply_to = null, subject = '', metadata = '{}',
                             last_error = null, erased_at = clock_timestamp()
         where message_id = any($1)",
        &erased,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update recipients set address = $3, lookup_key = $3, text = null
         where message_id = any($1) and lookup_key = $2",
        &erased,
        lookup_key,
        alias,
    )
    .execute(conn)
    .await?;
    Ok(Batch { last: ids.last().copied(), open: ids.len() - erased.len(), erased })
}
