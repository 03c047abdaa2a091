//! Who changed what: a row in the transaction of every change of configuration.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, interval::interval};

/// Who does it, and from where.
#[derive(Debug, Clone)]
pub struct Who {
    /// `key:<prefix>`, or `command line`.
    pub name: String,
    pub api_key_id: Option<Uuid>,
    pub source: Option<std::net::IpAddr>,
    pub request_id: Option<String>,
}

impl Who {
    pub fn command_line() -> Self {
        Self { name: "command line".to_owned(), api_key_id: None, source: None, request_id: None }
    }
}

/// One change: `before` is absent for what was made, `after` for what is gone. Both are the
/// types that the API shows, so that no secret can be in them.
pub async fn record<T: Serialize>(
    conn: &mut PgConnection,
    who: &Who,
    action: &str,
    subject: (&str, Uuid),
    before: Option<&T>,
    after: Option<&T>,
) -> Result<()> {
    let json = |side: Option<&T>| side.and_then(|it| serde_json::to_value(it).ok());
    sqlx::query!(
        "insert into audit (audit_id, actor, api_key_id, source, request_id, action, subject, subject_id, before, after)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        Uuid::now_v7(),
        who.name,
        who.api_key_id,
        who.source.map(ipnet::IpNet::from) as _,
        who.request_id,
        action,
        subject.0,
        subject.1.to_string(),
        json(before),
        json(after),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets at most so many entries older than this, from behind a key on; the key of the last.
pub async fn forget(
    conn: &mut PgConnection,
    age: Duration,
    behind: Uuid,
    most: i64,
) -> Result<(u64, Option<Uuid>)> {
    let gone = sqlx::query!(
        r#"with old as (
               select audit_id from audit
               where audit_id > $2 and audit_id < v7_floor(now() - $1::interval)
                 and at < clock_timestamp() - $1::interval
               order by audit_id limit $3
               for update skip locked
           ), gone as (
               delete from audit using old where audit.audit_id = old.audit_id
           )
           select count(*) as "n!", (array_agg(audit_id order by audit_id desc))[1] as last from old"#,
        interval(age),
        behind,
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok((gone.n.unsigned_abs(), gone.last))
}

/// How many entries are older than this, counted up to `most`.
pub async fn count(conn: &mut PgConnection, age: Duration, most: i64) -> Result<i64> {
    let n = sqlx::query_scalar!(
        r#"select count(*) as "n!" from (
               select from audit where audit_id < v7_floor(now() - $1::interval)
                 and at < clock_timestamp() - $1::interval limit $2
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
    let oldest = sqlx::query_scalar!("select at from audit order by audit_id limit 1");
    Ok(oldest.fetch_optional(conn).await?)
}
