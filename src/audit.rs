//! Who changed what: a row in the transaction of every change of configuration.

use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Result;

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
