//! The history: attempts and what they said of each recipient. Rows are never taken back; a reply
//! that came late still completes its attempt.

use std::collections::{HashMap, HashSet};

use sqlx::PgConnection;
use uuid::Uuid;

use super::complete::Report;
use crate::error::Result;

/// Writes how attempts ended, of those messages that still exist. Answers those that had not been
/// written before: what is said again is not said anew.
pub(super) async fn write(
    conn: &mut PgConnection,
    reports: &[Report],
    exists: &HashMap<Uuid, bool>,
) -> Result<HashSet<Uuid>> {
    let ended: Vec<_> = reports
        .iter()
        .filter(|report| exists.contains_key(&report.message_id))
        .flat_map(|report| report.attempts.iter().map(move |it| (report, it)))
        .collect();
    if ended.is_empty() {
        return Ok(HashSet::new());
    }
    macro_rules! column {
        ($field:expr) => {
            &ended.iter().map($field).collect::<Vec<_>>()
        };
    }
    let fresh = sqlx::query_scalar!(
        "insert into attempts (attempt_id, message_id, relay_id, relay_name, process_id, started_at, ended_at, phase,
                               result, code, enhanced, reason, text, peer, tls)
         select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::timestamptz[],
                              $7::timestamptz[], $8::text[], $9::text[], $10::smallint[], $11::text[], $12::text[],
                              $13::text[], $14::text[], $15::text[])
         on conflict on constraint attempts_pkey do update
         set ended_at = excluded.ended_at, phase = excluded.phase, result = excluded.result, code = excluded.code,
             enhanced = excluded.enhanced, reason = excluded.reason, text = excluded.text, peer = excluded.peer,
             tls = excluded.tls
         where attempts.ended_at is null or attempts.reason = 'process_died'
         returning attempt_id",
        column!(|(_, it)| it.attempt_id),
        column!(|(report, _)| report.message_id),
        column!(|(_, it)| it.relay_id) as &[Option<Uuid>],
        column!(|(_, it)| it.relay_name.clone()),
        column!(|(report, _)| report.process_id),
        column!(|(_, it)| it.started_at),
        column!(|(_, it)| it.ended_at),
        column!(|(_, it)| it.phase.to_owned()),
        column!(|(_, it)| it.result.to_owned()),
        column!(|(_, it)| it.words.code) as &[Option<i16>],
        column!(|(_, it)| it.words.enhanced.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.reason.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.text.clone()) as &[Option<String>],
        column!(|(_, it)| it.peer.clone()) as &[Option<String>],
        column!(|(_, it)| it.tls.clone()) as &[Option<String>],
    )
    .fetch_all(&mut *conn)
    .await?;
    write_words(conn, &ended.iter().map(|(_, it)| *it).collect::<Vec<_>>()).await?;
    Ok(fresh.into_iter().collect())
}

async fn write_words(conn: &mut PgConnection, ended: &[&super::complete::Ended]) -> Result<()> {
    let said: Vec<_> = ended
        .iter()
        .flat_map(|ended| ended.recipients.iter().map(move |it| (ended.attempt_id, it)))
        .collect();
    macro_rules! column {
        ($field:expr) => {
            &said.iter().map($field).collect::<Vec<_>>()
        };
    }
    sqlx::query!(
        "insert into attempt_recipients (attempt_id, recipient_id, result, code, enhanced, reason, text)
         select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::smallint[], $5::text[], $6::text[], $7::text[])
         on conflict on constraint attempt_recipients_pkey do nothing",
        column!(|(attempt, _)| *attempt),
        column!(|(_, it)| it.recipient_id),
        column!(|(_, it)| it.result.to_owned()),
        column!(|(_, it)| it.words.code) as &[Option<i16>],
        column!(|(_, it)| it.words.enhanced.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.reason.clone()) as &[Option<String>],
        column!(|(_, it)| it.words.text.clone()) as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the attempts that were marked and whose process let go of their message.
pub(super) async fn end_abandoned(
    conn: &mut PgConnection,
    messages: &[Uuid],
    text: &str,
) -> Result<()> {
    sqlx::query!(
        "update attempts set ended_at = clock_timestamp(), result = 'unknown', reason = 'process_died', text = $2
         where message_id = any($1) and marked_at is not null and ended_at is null",
        messages,
        text,
    )
    .execute(conn)
    .await?;
    Ok(())
}
