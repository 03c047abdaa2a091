//! What follows from the states of a message's recipients: its counters, its settlement, its job.
//! Everything is counted from the rows, so that no counter can drift.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::complete::{Changed, Report};
use crate::{
    error::Result,
    events::{self, Event},
    metrics::Metrics,
    queue::{self, NewJob, Priority},
    sending::messages::KIND,
};

/// What the completed steps add to the facts of a message.
pub(super) async fn recount(
    conn: &mut PgConnection,
    ids: &[Uuid],
    reports: &[Report],
    changed: &[Changed],
) -> Result<Vec<Settled>> {
    note(conn, reports, changed).await?;
    count(conn, ids).await
}

async fn note(conn: &mut PgConnection, reports: &[Report], changed: &[Changed]) -> Result<()> {
    let changed: HashSet<Uuid> = changed.iter().map(|it| it.recipient_id).collect();
    let mut facts: HashMap<Uuid, Facts> = HashMap::new();
    for report in reports {
        let fact = facts.entry(report.message_id).or_default();
        for ended in &report.attempts {
            fact.started_at = fact.started_at.or(Some(ended.started_at));
            fact.relay = Some(ended.relay_name.clone());
        }
        for change in report.changes.iter().filter(|it| changed.contains(&it.recipient_id)) {
            fact.resends += i32::from(change.resend);
            if !change.to.is_accepted() {
                fact.error = change.words.text.clone().or(fact.error.take());
            }
        }
    }
    let (ids, facts): (Vec<Uuid>, Vec<Facts>) = facts.into_iter().unzip();
    macro_rules! column {
        ($field:expr) => {
            &facts.iter().map($field).collect::<Vec<_>>()
        };
    }
    sqlx::query!(
        "update messages set
             n_attempts = (select count(*) from attempts where attempts.message_id = messages.message_id),
             resends = messages.resends + new.resends,
             started_at = coalesce(messages.started_at, new.started_at),
             last_relay = coalesce(new.relay, last_relay),
             last_error = coalesce(new.error, last_error)
         from unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::text[], $5::text[])
              as new (message_id, resends, started_at, relay, error)
         where messages.message_id = new.message_id",
        &ids,
        column!(|it| it.resends),
        column!(|it| it.started_at) as &[Option<DateTime<Utc>>],
        column!(|it| it.relay.clone()) as &[Option<String>],
        column!(|it| it.error.clone()) as &[Option<String>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[derive(Default)]
struct Facts {
    resends: i32,
    started_at: Option<DateTime<Utc>>,
    relay: Option<String>,
    error: Option<String>,
}

/// A message that has settled just now.
#[derive(Debug)]
pub struct Settled {
    pub outcome: String,
    /// Seconds since its retry window opened.
    pub after: f64,
}

impl Settled {
    /// For the metrics, once the transaction is committed.
    pub fn tell(all: &[Self], metrics: &Metrics) {
        all.iter().for_each(|it| metrics.sending.settled(&it.outcome, it.after));
    }
}

/// Counts the recipients of these messages, which the caller has locked, and settles those whose
/// last open recipient has an outcome. A message settles once, and tells it once;
/// one that was opened again by a retry settles again.
pub async fn count(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Settled>> {
    let settled = sqlx::query!(
        r#"with counted as materialized (
             select message_id,
                    count(*) filter (where state not in ('unknown', 'sent', 'delivered', 'delayed', 'bounced', 'complained',
                                                      'failed', 'suppressed', 'cancelled', 'expired'))::integer as open,
                    count(*) filter (where state = 'unknown')::integer as unknown,
                    count(*) filter (where state in ('sent', 'delivered', 'delayed', 'bounced', 'complained'))::integer
                        as accepted,
                    count(*)::integer as recipients,
                    count(distinct state) as states,
                    min(state) as state
             from recipients where message_id = any($1) group by message_id
         ), old as materialized (
             select message_id, settled_at from messages where message_id = any($1)
         )
         update messages set
             n_open = counted.open, n_unknown = counted.unknown, n_accepted = counted.accepted,
             settled_at = case when counted.open = 0 and counted.unknown = 0
                               then coalesce(messages.settled_at, clock_timestamp()) end,
             outcome = case
                 when counted.open > 0 or counted.unknown > 0 then null
                 when counted.accepted = counted.recipients then 'sent'
                 when counted.accepted > 0 then 'partial'
                 when counted.states = 1 then counted.state
                 else 'failed' end
         from counted join old using (message_id)
         where messages.message_id = counted.message_id
         returning messages.message_id, messages.outcome, messages.internet_id, messages.n_accepted,
                   messages.n_recipients, messages.last_error,
                   extract(epoch from messages.settled_at - coalesce(messages.window_from, messages.created_at))::float8 as after,
                   (messages.settled_at is not null and old.settled_at is null) as "settled_now!""#,
        ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    let now: Vec<_> = settled.into_iter().filter(|it| it.settled_now).collect();
    let told: Vec<Event> = now
        .iter()
        .map(|it| Event {
            kind: if it.n_accepted > 0 { "send.completed" } else { "send.failed" },
            subject: "message",
            subject_id: it.message_id,
            data: json!({
                "outcome": it.outcome, "messageId": it.internet_id, "accepted": it.n_accepted,
                "recipients": it.n_recipients, "error": it.last_error,
            }),
        })
        .collect();
    events::emit(conn, &told).await?;
    let settled = |outcome: Option<String>, after: Option<f64>| Settled {
        outcome: outcome.unwrap_or_default(),
        // A scheduled message may be cancelled before its time.
        after: after.unwrap_or_default().max(0.0),
    };
    Ok(now.into_iter().map(|it| settled(it.outcome, it.after)).collect())
}

/// Lets go of these messages' jobs, which the caller has fenced: due again when their first
/// waiting recipient is, or out of the queue.
pub(super) async fn release(conn: &mut PgConnection, ids: &[Uuid]) -> Result<()> {
    let waiting = waiting(conn, ids).await?;
    let ended: Vec<Uuid> = ids.iter().copied().filter(|id| !waiting.contains_key(id)).collect();
    let (again, due): (Vec<Uuid>, Vec<DateTime<Utc>>) = waiting.into_iter().unzip();
    queue::end(conn, &ended).await?;
    Ok(queue::again(conn, &again, &due).await?)
}

/// When the first waiting recipient of each message is due.
pub(super) async fn waiting(
    conn: &mut PgConnection,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, DateTime<Utc>>> {
    let rows = sqlx::query!(
        r#"select message_id, min(next_at) as "due!" from recipients
           where message_id = any($1) and state in ('queued', 'deferred')
           group by message_id"#,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.message_id, row.due)).collect())
}

/// Makes sure that these messages have a job if a recipient of theirs waits, due when the first is.
pub(super) async fn queue_again(conn: &mut PgConnection, ids: &[Uuid]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query!(
        r#"select message_id, priority, waiting.due as "due!",
                  case mode when 'live' then split_part(from_address, '@', -1) else mode end as "lane!"
           from messages cross join lateral (
               select min(next_at) as due from recipients
               where recipients.message_id = messages.message_id and state in ('queued', 'deferred')
           ) as waiting
           where message_id = any($1) and waiting.due is not null
           order by message_id"#,
        ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    let jobs: Vec<NewJob<'_>> = rows
        .iter()
        .map(|row| NewJob {
            job_id: row.message_id,
            lane: &row.lane,
            priority: Priority::from(row.priority),
            due: Some(row.due),
        })
        .collect();
    Ok(queue::enqueue(conn, KIND, &jobs).await?)
}
