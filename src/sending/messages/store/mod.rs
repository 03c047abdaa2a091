//! The SQL of `messages`, `recipients`, `attempts` and their content.
//!
//! Locks are taken in one order: the job (by [`crate::queue::fence`]), then the message, then its
//! recipients, each by id.

pub mod accept;
pub mod addressed;
mod attempts;
pub mod batch;
pub mod cancel;
pub mod complete;
pub mod expire;
pub mod held;
pub mod learn;
pub mod list;
pub mod load;
pub mod mark;
pub mod read;
pub mod recover;
pub mod resolve;
pub mod retained;
pub mod retry;
pub mod schedule;
pub mod settle;

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    accounts::access::Sees,
    error::{Error, Result},
    queue,
};

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

/// Locks a message and its job, for whoever may decide about it.
async fn lock_one(conn: &mut PgConnection, id: Uuid, sees: Sees) -> Result<()> {
    let seen = sqlx::query_scalar!(
        r#"select exists (select from messages where message_id = $1 and ($2::uuid is null or api_key_id = $2)) as "seen!""#,
        id,
        sees.key(),
    )
    .fetch_one(&mut *conn)
    .await?;
    if !seen {
        return Err(Error::NotFound("Job"));
    }
    queue::lock(conn, &[id]).await?;
    match lock_messages(conn, &[id]).await?.is_empty() {
        true => Err(Error::NotFound("Job")),
        false => Ok(()),
    }
}
