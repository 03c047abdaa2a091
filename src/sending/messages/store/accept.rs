//! Writes accepted messages: one statement a table, however many messages.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{error::Result, sending::messages::accept::Item};

/// The bytes of a message lie in chunks of this size.
pub const CHUNK: usize = 256 * 1024;

/// What an idempotency key was found to stand for.
#[derive(Debug, Clone)]
pub struct Earlier {
    pub api_key_id: Uuid,
    pub key: String,
    pub request_hash: Vec<u8>,
    pub message_id: Uuid,
}

/// Claims the keys given, each for its message. Answers the ids of the messages that got theirs:
/// the others' keys stand for an earlier request. Keys that have expired are taken over.
/// The keys are sorted, so that two batches never wait for each other in a circle.
pub async fn claim_keys(conn: &mut PgConnection, items: &[&Item]) -> Result<Vec<Uuid>> {
    let mut keyed: Vec<_> = items
        .iter()
        .filter_map(|item| item.idempotency.as_ref().map(|it| (it, item.message_id)))
        .collect();
    if keyed.is_empty() {
        return Ok(Vec::new());
    }
    keyed.sort_by(|(a, _), (b, _)| (a.api_key_id, &a.key).cmp(&(b.api_key_id, &b.key)));
    let api_keys: Vec<_> = keyed.iter().map(|(it, _)| it.api_key_id).collect();
    let keys: Vec<_> = keyed.iter().map(|(it, _)| it.key.clone()).collect();
    let hashes: Vec<_> = keyed.iter().map(|(it, _)| it.request_hash.to_vec()).collect();
    let messages: Vec<_> = keyed.iter().map(|(_, message)| *message).collect();
    let won = sqlx::query_scalar!(
        "insert into idempotency_keys (api_key_id, key, request_hash, message_id, expires_at)
         select api_key_id, key, request_hash, message_id, clock_timestamp() + interval '24 hours'
         from unnest($1::uuid[], $2::text[], $3::bytea[], $4::uuid[])
              with ordinality as new (api_key_id, key, request_hash, message_id, nth)
         order by nth
         on conflict on constraint idempotency_keys_pkey do update
         set request_hash = excluded.request_hash, message_id = excluded.message_id,
             expires_at = excluded.expires_at, answer = null
         where idempotency_keys.expires_at < clock_timestamp()
         returning message_id",
        &api_keys,
        &keys,
        &hashes,
        &messages,
    )
    .fetch_all(conn)
    .await?;
    Ok(won)
}

/// Which of these messages are written already.
pub async fn written(conn: &mut PgConnection, ids: &[Uuid]) -> Result<HashSet<Uuid>> {
    let found =
        sqlx::query_scalar!("select message_id from messages where message_id = any($1)", ids)
            .fetch_all(conn)
            .await?;
    Ok(found.into_iter().collect())
}

/// What these keys stand for, those that have not expired.
pub async fn earlier(conn: &mut PgConnection, keys: &[(Uuid, String)]) -> Result<Vec<Earlier>> {
    let (api_keys, keys): (Vec<Uuid>, Vec<String>) = keys.iter().cloned().unzip();
    let rows = sqlx::query_as!(
        Earlier,
        "select api_key_id, key, request_hash, message_id from idempotency_keys
         join unnest($1::uuid[], $2::text[]) as asked (api_key_id, key) using (api_key_id, key)
         where expires_at >= clock_timestamp()",
        &api_keys,
        &keys,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Which of these addresses are suppressed, with the reason.
pub async fn suppressed(
    conn: &mut PgConnection,
    lookup_keys: &[String],
) -> Result<Vec<(String, String)>> {
    let rows = sqlx::query!(
        "select lookup_key, reason from suppressions where lookup_key = any($1)",
        lookup_keys,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.lookup_key, row.reason)).collect())
}

/// Writes messages, their bytes and their recipients. Answers when each was accepted; one is left
/// out, with its idempotency key, if another message has its Message-ID.
pub async fn insert(
    conn: &mut PgConnection,
    items: &[&Item],
) -> Result<HashMap<Uuid, DateTime<Utc>>> {
    // Sorted, so that two batches never wait for each other in a circle.
    let mut items = items.to_vec();
    items.sort_by(|a, b| a.internet_id.cmp(&b.internet_id));
    let times = insert_messages(conn, &items).await?;
    let left_out: Vec<Uuid> =
        items.iter().map(|it| it.message_id).filter(|id| !times.contains_key(id)).collect();
    if !left_out.is_empty() {
        items.retain(|it| times.contains_key(&it.message_id));
        sqlx::query!("delete from idempotency_keys where message_id = any($1)", &left_out)
            .execute(&mut *conn)
            .await?;
    }
    insert_content(conn, &items).await?;
    insert_recipients(conn, &items).await?;
    Ok(times)
}

async fn insert_messages(
    conn: &mut PgConnection,
    items: &[&Item],
) -> Result<HashMap<Uuid, DateTime<Utc>>> {
    macro_rules! column {
        ($field:expr) => {
            &items.iter().map($field).collect::<Vec<_>>()
        };
    }
    let rows = sqlx::query!(
        "insert into messages (message_id, api_key_id, internet_id, from_address, from_header, to_header, cc_header,
                               reply_to, subject, size, smtputf8, has_attachment, tags, metadata, priority,
                               expires_at, on_unknown, suppression_exempt, n_recipients, n_open, settled_at, outcome,
                               send_at, ttl, window_from, mode, eight_bit)
         select message_id, api_key_id, internet_id, from_address, from_header, to_header, cc_header, reply_to,
                subject, size, smtputf8, has_attachment,
                array(select jsonb_array_elements_text(tags)), metadata, priority, expires_at, on_unknown,
                suppression_exempt, n_recipients, n_open,
                case when n_open = 0 then clock_timestamp() end, case when n_open = 0 then 'suppressed' end,
                send_at, ttl, case when send_at is not null then greatest(send_at, clock_timestamp()) end, mode,
                eight_bit
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                     $9::text[], $10::bigint[], $11::boolean[], $12::boolean[], $13::jsonb[], $14::jsonb[],
                     $15::smallint[], $16::timestamptz[], $17::text[], $18::boolean[], $19::integer[],
                     $20::integer[], $21::timestamptz[], $22::integer[], $23::text[], $24::boolean[])
              as new (message_id, api_key_id, internet_id, from_address, from_header, to_header, cc_header,
                      reply_to, subject, size, smtputf8, has_attachment, tags, metadata, priority, expires_at,
                      on_unknown, suppression_exempt, n_recipients, n_open, send_at, ttl, mode, eight_bit)
         on conflict on constraint messages_internet_id_key do nothing
         returning message_id, created_at",
        column!(|it| it.message_id),
        column!(|it| it.api_key_id),
        column!(|it| it.internet_id.clone()),
        column!(|it| it.from_address.clone()),
        column!(|it| it.from_header.clone()),
        column!(|it| it.to_header.clone()),
        column!(|it| it.cc_header.clone()),
        column!(|it| it.reply_to.clone()) as &[Option<String>],
        column!(|it| it.subject.clone()),
        column!(|it| i64::try_from(it.bytes.len()).unwrap_or(i64::MAX)),
        column!(|it| it.smtputf8),
        column!(|it| it.has_attachment),
        column!(|it| serde_json::json!(it.tags)),
        column!(|it| it.metadata.clone()),
        column!(|it| it.priority as i16),
        column!(|it| it.expires_at) as &[Option<DateTime<Utc>>],
        column!(|it| it.on_unknown.map(|it| it.as_str().to_owned())) as &[Option<String>],
        column!(|it| it.suppression_exempt),
        column!(|it| i32::try_from(it.recipients.len()).unwrap_or(i32::MAX)),
        column!(|it| i32::try_from(it.n_open()).unwrap_or(i32::MAX)),
        column!(|it| it.send_at) as &[Option<DateTime<Utc>>],
        column!(|it| it.ttl) as &[Option<i32>],
        column!(|it| it.mode.as_str().to_owned()),
        column!(|it| it.eight_bit),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.message_id, row.created_at)).collect())
}

async fn insert_content(conn: &mut PgConnection, items: &[&Item]) -> Result<()> {
    let (mut ids, mut seqs, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        for (chunk, seq) in item.bytes.chunks(CHUNK).zip(0i32..) {
            ids.push(item.message_id);
            seqs.push(seq);
            chunks.push(chunk);
        }
    }
    sqlx::query!(
        "insert into message_content (message_id, seq, bytes)
         select * from unnest($1::uuid[], $2::integer[], $3::bytea[])",
        &ids,
        &seqs,
        &chunks as &[&[u8]],
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn insert_recipients(conn: &mut PgConnection, items: &[&Item]) -> Result<()> {
    let all: Vec<_> = items
        .iter()
        .flat_map(|item| item.recipients.iter().zip(0i32..).map(move |it| (item, it)))
        .collect();
    macro_rules! column {
        ($field:expr) => {
            &all.iter().map($field).collect::<Vec<_>>()
        };
    }
    sqlx::query!(
        "insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender,
                                 state, next_at, settled_at, reason, text)
         select recipient_id, message_id, position, field, address, lookup_key, envelope_sender,
                case when suppressed is null then 'queued' else 'suppressed' end,
                case when suppressed is null then greatest(send_at, clock_timestamp()) end,
                case when suppressed is not null then clock_timestamp() end,
                case when suppressed is not null then 'suppressed' end, suppressed
         from unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                     $9::timestamptz[])
              as new (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, suppressed,
                      send_at)",
        column!(|(_, (it, _))| it.recipient_id),
        column!(|(item, _)| item.message_id),
        column!(|(_, (_, position))| *position),
        column!(|(_, (it, _))| it.field.to_owned()),
        column!(|(_, (it, _))| it.address.clone()),
        column!(|(_, (it, _))| it.lookup_key.clone()),
        column!(|(item, _)| item.from_address.clone()),
        column!(|(_, (it, _))| it.suppressed.clone()) as &[Option<String>],
        column!(|(item, _)| item.send_at) as &[Option<DateTime<Utc>>],
    )
    .execute(conn)
    .await?;
    Ok(())
}
