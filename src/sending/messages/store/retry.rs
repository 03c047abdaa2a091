//! Trying again what has failed, and now what waits.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use super::{lock_messages, lock_one, settle};
use crate::{
    accounts::access::Sees,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
    queue,
};

/// What is to be tried again; an absent field does not narrow it.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    /// Recipients in one of these settled states; `suppressed` only those that are so no longer.
    pub states: &'a [&'a str],
    /// Recipients that wait for a later try.
    pub waiting: bool,
    pub settled: Option<bool>,
    pub accepted: Option<bool>,
    pub outcome: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub relay: Option<&'a str>,
    pub sender_domain: Option<String>,
    pub recipient_domain: Option<String>,
    pub tag: Option<&'a str>,
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    pub key: Option<Uuid>,
}

/// A message, and those of its recipients that are to be tried again.
#[derive(Debug)]
pub struct Found {
    pub message_id: Uuid,
    pub recipients: Vec<Uuid>,
}

/// Tries one message again.
pub async fn one(db: &PgPool, id: Uuid, sees: Sees, who: &Who) -> Result<()> {
    let mut tx = db.begin().await?;
    lock_one(&mut tx, id, sees).await?;
    let wanted =
        Wanted { states: &["failed", "expired", "suppressed"], waiting: true, ..Wanted::default() };
    let found = among(&mut *tx, Sees::All, &wanted, Some(id), 1).await?;
    if found.is_empty() {
        return Err(Error::conflict(
            "NOTHING_TO_RETRY",
            "no recipient of this message can be tried again",
        ));
    }
    if !has_content(&mut tx, id).await? {
        return Err(Error::conflict("CONTENT_GONE", "the content of this message was erased"));
    }
    again(&mut tx, &found, who).await?;
    tx.commit().await?;
    Ok(())
}

/// Tries these messages again, in one transaction. What has changed since it was found is left
/// alone. Answers how many messages and recipients.
pub async fn some(db: &PgPool, found: &[Found], who: &Who) -> Result<(usize, usize)> {
    let mut tx = db.begin().await?;
    let ids: Vec<Uuid> = found.iter().map(|it| it.message_id).collect();
    queue::lock(&mut tx, &ids).await?;
    let counts = again(&mut tx, found, who).await?;
    tx.commit().await?;
    Ok(counts)
}

/// What can be tried again, the oldest messages first. Nothing is locked.
pub async fn find(db: &PgPool, sees: Sees, wanted: &Wanted<'_>, limit: i64) -> Result<Vec<Found>> {
    among(db, sees, wanted, None, limit).await
}

async fn among(
    db: impl PgExecutor<'_>,
    sees: Sees,
    wanted: &Wanted<'_>,
    only: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Found>> {
    let rows = sqlx::query!(
        r#"select messages.message_id, array_agg(chosen.recipient_id order by chosen.recipient_id) as "recipients!"
           from messages join lateral (
               select recipient_id from recipients
               where recipients.message_id = messages.message_id
                 and (state = any($1)
                      and (state <> 'suppressed' or suppression_exempt
                           or not exists (select from suppressions where suppressions.lookup_key = recipients.lookup_key))
                      or $2 and state in ('queued', 'deferred') and next_at > clock_timestamp()
                         and coalesce(send_at <= clock_timestamp(), true))
                 and ($3::text is null or reason = $3)
                 and ($4::text is null or relay_id in (select relay_id from relays where name = $4 or relay_id::text = $4))
                 and ($5::text is null or split_part(recipients.lookup_key, '@', -1) = $5)
           ) as chosen on true
           where (settled_at is null or outcome <> 'sent')
             and ($6::uuid is null or messages.message_id = $6)
             and ($7::uuid is null or api_key_id = $7) and ($8::uuid is null or api_key_id = $8)
             and ($9::boolean is null or (settled_at is not null) = $9)
             and ($10::boolean is null or (n_accepted > 0) = $10)
             and ($11::text is null or outcome = $11)
             and ($12::text is null or split_part(from_address, '@', -1) = $12)
             and ($13::text is null or tags @> array[$13])
             and ($14::timestamptz is null or messages.created_at >= $14)
             and ($15::timestamptz is null or messages.created_at < $15)
             and ($6 is not null or exists (select from message_content content
                                            where content.message_id = messages.message_id and seq = 0))
           group by messages.message_id order by messages.message_id limit $16"#,
        &wanted.states.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
        wanted.waiting,
        wanted.reason,
        wanted.relay,
        wanted.recipient_domain,
        only,
        sees.key(),
        wanted.key,
        wanted.settled,
        wanted.accepted,
        wanted.outcome,
        wanted.sender_domain,
        wanted.tag,
        wanted.since,
        wanted.until,
        limit,
    )
    .fetch_all(db)
    .await?;
    let found = rows.into_iter();
    Ok(found.map(|it| Found { message_id: it.message_id, recipients: it.recipients }).collect())
}

/// A recipient that is tried again.
struct Again {
    message_id: Uuid,
    address: String,
    /// It had an outcome.
    reopened: bool,
}

/// Queues recipients again. The jobs are locked.
async fn again(conn: &mut PgConnection, found: &[Found], who: &Who) -> Result<(usize, usize)> {
    let ids: Vec<Uuid> = found.iter().map(|it| it.message_id).collect();
    let settled = lock_messages(conn, &ids).await?;
    let recipients: Vec<Uuid> = found.iter().flat_map(|it| it.recipients.clone()).collect();
    let rows = reopen(conn, &recipients).await?;
    let mut counts: BTreeMap<Uuid, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.message_id).or_default() += 1);
    let ids: Vec<Uuid> = counts.keys().copied().collect();
    let reopened: HashSet<Uuid> =
        rows.iter().filter(|row| row.reopened).map(|row| row.message_id).collect();
    sqlx::query!(
        "update messages set
             retries = retries + 1,
             window_from = case when anew then clock_timestamp() else window_from end,
             expires_at = case when anew and ttl is not null then clock_timestamp() + make_interval(secs => ttl)
                               when anew and expires_at <= clock_timestamp() then null
                               else expires_at end
         from (select message_id as id, message_id = any($2) as anew from unnest($1::uuid[]) as given (message_id)) as new
         where message_id = new.id",
        &ids,
        &reopened.iter().copied().collect::<Vec<_>>(),
    )
    .execute(&mut *conn)
    .await?;
    let mut told: Vec<Event> = Vec::new();
    for (id, recipients) in &counts {
        let opened = settled.get(id).copied().unwrap_or(false);
        let data = json!({ "recipients": recipients, "reopened": opened });
        audit::record(conn, who, "message.retried", ("message", *id), None, Some(&data)).await?;
        told.push(Event { kind: "message.retried", subject: "message", subject_id: *id, data });
    }
    let queued = rows.iter().filter(|row| row.reopened).map(|row| Event {
        kind: "recipient.queued",
        subject: "message",
        subject_id: row.message_id,
        data: json!({ "address": row.address, "reason": "retried" }),
    });
    told.extend(queued);
    events::emit(conn, &told).await?;
    settle::count(conn, &ids).await?;
    settle::queue_again(conn, &ids).await?;
    Ok((ids.len(), rows.len()))
}

async fn reopen(conn: &mut PgConnection, recipients: &[Uuid]) -> Result<Vec<Again>> {
    let rows = sqlx::query_as!(
        Again,
        r#"with old as materialized (
               select recipient_id, state in ('failed', 'expired', 'suppressed') as reopened from recipients
               where recipient_id = any($1)
                 and (state in ('failed', 'expired', 'suppressed')
                      or state in ('queued', 'deferred') and next_at > clock_timestamp())
                 -- Erased since it was found: there is nothing left to send.
                 and exists (select from message_content content
                             where content.message_id = recipients.message_id and seq = 0)
               order by recipient_id for update
           )
           update recipients set
               state = case when old.reopened then 'queued' else state end,
               tries = case when old.reopened then 0 else tries end,
               faults = 0, next_at = clock_timestamp(), settled_at = null
           from old where recipients.recipient_id = old.recipient_id
           returning message_id, address, old.reopened as "reopened!""#,
        recipients,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

async fn has_content(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    let has = sqlx::query_scalar!(
        r#"select exists (select from message_content where message_id = $1) as "has!""#,
        id,
    )
    .fetch_one(conn)
    .await?;
    Ok(has)
}
