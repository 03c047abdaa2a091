//! Lists of messages. Each filter has its index; the statement names only what is asked for, so
//! that each gets its own plan.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::read::Row;
use crate::{
    accounts::access::Sees,
    error::Result,
    sending::messages::list::{Filter, Outcome, Status},
};

/// The ids of messages hold the time when they were made, by the clock of their process; when a message
/// was accepted is told by the database's. They differ by less than this.
const SLACK: TimeDelta = TimeDelta::days(1);

/// Messages behind `before`, the newest first, without their content.
pub async fn list(
    db: &PgPool,
    sees: Sees,
    filter: &Filter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Row>> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "select message_id, api_key_id, messages.created_at, internet_id, from_header, to_header, cc_header, reply_to,
                subject, size, tags, metadata, expires_at, n_recipients, n_open, n_unknown, n_accepted, n_attempts,
                resends, retries, send_at, started_at, last_relay, last_error, outcome, settled_at, erased_at,
                coalesce(jobs.state = 'leased', false) as leased, jobs.due_at as next_at
         from ",
    );
    match filter.lookup_key()? {
        Some(key) => {
            sql.push("(select distinct message_id from recipients where lookup_key = ")
                .push_bind(key);
            if let Some(before) = before {
                sql.push(" and message_id < ").push_bind(before);
            }
            sql.push(") as addressed join messages using (message_id)");
        }
        None => _ = sql.push("messages"),
    }
    sql.push(" left join jobs on job_id = message_id where true");
    if let Some(key) = sees.key() {
        sql.push(" and api_key_id = ").push_bind(key);
    }
    if let Some(before) = before {
        sql.push(" and message_id < ").push_bind(before);
    }
    narrow(&mut sql, filter);
    sql.push(" order by message_id desc limit ").push_bind(limit);
    Ok(sql.build_query_as().fetch_all(db).await?)
}

fn narrow(sql: &mut QueryBuilder<Postgres>, filter: &Filter) {
    if let Some(status) = filter.status {
        sql.push(of_status(status));
    }
    if let Some(outcome) = filter.outcome {
        sql.push(of_outcome(outcome));
    }
    if let Some(scheduled) = filter.scheduled {
        sql.push(match scheduled {
            true => " and settled_at is null and send_at > clock_timestamp()",
            false => {
                " and (settled_at is not null or coalesce(send_at <= clock_timestamp(), true))"
            }
        });
    }
    if let Some(tag) = &filter.tag {
        sql.push(" and tags <> '{}' and tags @> array[").push_bind(tag.clone()).push("]");
    }
    if let Some(key) = filter.key {
        sql.push(" and api_key_id = ").push_bind(key);
    }
    if let Some(since) = filter.since {
        sql.push(" and messages.created_at >= ").push_bind(since);
        sql.push(" and message_id >= ").push_bind(first_id(since - SLACK));
    }
    if let Some(until) = filter.until {
        sql.push(" and messages.created_at < ").push_bind(until);
        sql.push(" and message_id < ").push_bind(first_id(until + SLACK));
    }
}

/// As `view.rs` says it.
fn of_status(status: Status) -> &'static str {
    match status {
        Status::Pending => {
            " and settled_at is null and n_open > 0 and jobs.state is distinct from 'leased'"
        }
        Status::Processing => " and settled_at is null and (n_open = 0 or jobs.state = 'leased')",
        Status::Done => " and settled_at is not null and n_accepted > 0",
        Status::Dead => " and settled_at is not null and n_accepted = 0",
    }
}

/// In letters, not as a parameter: the index holds what was not sent, and must be known to fit.
fn of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Sent => " and outcome = 'sent'",
        Outcome::Partial => " and outcome = 'partial'",
        Outcome::Failed => " and outcome = 'failed'",
        Outcome::Unknown => " and settled_at is null and n_open = 0 and n_unknown > 0",
        Outcome::Suppressed => " and outcome = 'suppressed'",
        Outcome::Cancelled => " and outcome = 'cancelled'",
        Outcome::Expired => " and outcome = 'expired'",
    }
}

/// No id that was made at this time or later is less (RFC 9562, 5.7).
fn first_id(time: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(time.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}
