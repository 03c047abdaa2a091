//! The SQL of `messages`, `recipients`, `attempts` and their content.
//!
//! Locks are taken in one order: the job (by [`crate::queue::fence`]), then the message, then its
//! recipients, each by id.

pub mod accept;
mod attempts;
pub mod complete;
pub mod expire;
pub mod held;
pub mod load;
pub mod mark;
pub mod read;
pub mod recover;
pub mod resolve;
pub mod settle;

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::error::Result;

/// Locks messages in order of their ids; says of those that exist whether they have settled.
async fn lock_messages(conn: &mut PgConnection, ids: &[Uuid]) -> Result<HashMap<Uuid, bool>> {
    let rows = sqlx::query!(
        r#"select message_id, settled_at is not null as "settled!" from messages
           where message_id = any($1) order by message_id for no key update"#,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.message_id, row.settled)).collect())
}
