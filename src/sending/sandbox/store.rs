//! The SQL of `sandbox_messages`. Whoever is no reader sees what its own key sent.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::session::Received;
use crate::{accounts::access::Sees, error::Result, interval::interval};

#[derive(Debug, Clone)]
pub struct Row {
    pub id: Uuid,
    pub received_at: DateTime<Utc>,
    pub helo: String,
    pub mail_from: String,
    pub rcpt_to: Vec<String>,
    /// In bytes, of the whole.
    pub size: i32,
    /// The whole, or as much of it as a list needs to read the header.
    pub raw: Vec<u8>,
}

/// Keeps a message under this id; once, however often it is called.
pub async fn keep(db: &PgPool, id: Uuid, message: &Received) -> Result<()> {
    let parsed = mail_parser::MessageParser::default().parse_headers(&message.raw);
    let internet_id = parsed.as_ref().and_then(|it| it.message_id());
    sqlx::query!(
        "insert into sandbox_messages (sandbox_message_id, internet_id, helo, mail_from, rcpt_to, raw)
         values ($1, $2, $3, $4, $5, $6) on conflict on constraint sandbox_messages_pkey do nothing",
        id,
        internet_id,
        message.helo,
        message.mail_from,
        &message.rcpt_to,
        message.raw,
    )
    .execute(db)
    .await?;
    Ok(())
}

pub(super) async fn list(
    db: &PgPool,
    sees: Sees,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select sandbox_message_id as id, received_at, helo, mail_from, rcpt_to, length(raw) as "size!",
                substring(raw for 65536) as "raw!"
         from sandbox_messages
         where ($1::uuid is null or internet_id in (select internet_id from messages where api_key_id = $1))
           and ($2::uuid is null or sandbox_message_id < $2)
         order by sandbox_message_id desc limit $3"#,
        sees.key(),
        before,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

pub(super) async fn one(db: &PgPool, sees: Sees, id: Uuid) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        r#"select sandbox_message_id as id, received_at, helo, mail_from, rcpt_to, length(raw) as "size!", raw
         from sandbox_messages
         where sandbox_message_id = $2
           and ($1::uuid is null or internet_id in (select internet_id from messages where api_key_id = $1))"#,
        sees.key(),
        id,
    )
    .fetch_optional(db)
    .await?;
    Ok(row)
}

pub(super) async fn clear(db: &PgPool) -> Result<()> {
    sqlx::query!("delete from sandbox_messages").execute(db).await?;
    Ok(())
}

/// How many are for one of these spellings of an address.
pub async fn count_to(db: &PgPool, spellings: &[String]) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from sandbox_messages where rcpt_to && $1"#,
        spellings,
    );
    Ok(count.fetch_one(db).await?)
}

/// Deletes those that are for one of these spellings of an address. Answers how many.
pub async fn erase_to(conn: &mut PgConnection, spellings: &[String]) -> Result<u64> {
    let done = sqlx::query!("delete from sandbox_messages where rcpt_to && $1", spellings);
    Ok(done.execute(conn).await?.rows_affected())
}

/// Forgets at most so many messages older than this, from behind a key on; the key of the last.
pub async fn forget(
    conn: &mut PgConnection,
    age: Duration,
    behind: Uuid,
    most: i64,
) -> Result<(u64, Option<Uuid>)> {
    let gone = sqlx::query!(
        r#"with old as (
               select sandbox_message_id from sandbox_messages
               where sandbox_message_id > $2 and sandbox_message_id < v7_floor(now() - $1::interval)
                 and received_at < clock_timestamp() - $1::interval
               order by sandbox_message_id limit $3
               for update skip locked
           ), gone as (
               delete from sandbox_messages using old where sandbox_messages.sandbox_message_id = old.sandbox_message_id
           )
           select count(*) as "n!", (array_agg(sandbox_message_id order by sandbox_message_id desc))[1] as last from old"#,
        interval(age),
        behind,
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok((gone.n.unsigned_abs(), gone.last))
}

/// How many messages are older than this, counted up to `most`.
pub async fn count(conn: &mut PgConnection, age: Duration, most: i64) -> Result<i64> {
    let n = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (
               select from sandbox_messages where sandbox_message_id < v7_floor(now() - $1::interval)
                 and received_at < clock_timestamp() - $1::interval limit $2
           ) as old"#,
        interval(age),
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok(n)
}

/// When the oldest came.
pub async fn oldest(conn: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
    let oldest = sqlx::query_scalar!(
        "select received_at from sandbox_messages order by sandbox_message_id limit 1"
    );
    Ok(oldest.fetch_optional(conn).await?)
}
