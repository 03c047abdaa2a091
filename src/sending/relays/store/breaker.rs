//! The SQL of `relay_breakers`: each change is written over the generation it was wished for in.

use std::time::Duration;

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::{
    error::Result,
    interval::interval,
    sending::relays::breaker::{PROBE_PATIENCE, Wish},
};

/// A breaker as it is kept.
#[derive(Debug, Clone)]
pub struct Row {
    pub relay_id: Uuid,
    pub state: String,
    pub generation: i64,
    /// Seconds until `until`; none for a closed one, 0 where the probe's process is dead.
    pub left: Option<f64>,
    /// Seconds.
    pub rest: f64,
    pub reason: Option<String>,
    pub text: Option<String>,
    /// Seconds since it opened.
    pub open_for: Option<f64>,
}

pub async fn all(db: &PgPool, lease: Duration) -> Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select relay_id, state, generation, rest, reason, text,
                  extract(epoch from clock_timestamp() - opened_at)::float8 as open_for,
                  case when state = 'half_open' and not exists (
                           select from processes where process_id = probe_by
                           and heartbeat_at > clock_timestamp() - $1::interval)
                       then 0
                       else extract(epoch from until - clock_timestamp())::float8 end as left
           from relay_breakers"#,
        interval(lease),
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// What it opened on.
#[derive(Debug, Clone, Default)]
pub struct Words {
    pub reason: Option<String>,
    pub text: Option<String>,
}

/// Writes a wish over this generation. Answers since when (seconds) the breaker had been open; none
/// if another process came first, or the relay is gone.
pub async fn write(
    conn: &mut PgConnection,
    relay: Uuid,
    generation: i64,
    wish: Wish,
    words: &Words,
) -> Result<Option<f64>> {
    let (state, rest, wait) = match wish {
        Wish::Open { rest } | Wish::Prolong { rest } => ("open", rest, Some(rest)),
        Wish::Free { rest } => ("open", rest, Some(Duration::ZERO)),
        Wish::Close => ("closed", Duration::ZERO, None),
    };
    let opens = matches!(wish, Wish::Open { .. });
    let written = sqlx::query_scalar!(
        r#"with old as materialized (
             select opened_at from relay_breakers where relay_id = $1
         )
         insert into relay_breakers (relay_id, state, generation, until, rest, reason, text, opened_at)
         select $1, $3, $2::bigint + 1, clock_timestamp() + $4::interval, $5, $6, $7, clock_timestamp()
         where exists (select from relays where relay_id = $1)
         on conflict on constraint relay_breakers_pkey do update set
             state = excluded.state, generation = excluded.generation, until = excluded.until, rest = excluded.rest,
             probe_by = null, changed_at = clock_timestamp(),
             reason = coalesce(excluded.reason, relay_breakers.reason),
             text = coalesce(excluded.text, relay_breakers.text),
             opened_at = case when $8 then excluded.opened_at else relay_breakers.opened_at end
         where relay_breakers.generation = $2
         returning coalesce(extract(epoch from clock_timestamp() - (select opened_at from old)), 0)::float8 as "open_for!""#,
        relay,
        generation,
        state,
        wait.map(interval) as Option<sqlx::postgres::types::PgInterval>,
        rest.as_secs_f64(),
        words.reason,
        words.text,
        opens,
    )
    .fetch_optional(conn)
    .await?;
    Ok(written)
}

/// Hands out the probe that is due, over this generation. Answers the new one; none if another
/// process came first.
pub async fn probe(
    db: &PgPool,
    relay: Uuid,
    generation: i64,
    process: Uuid,
    lease: Duration,
) -> Result<Option<i64>> {
    let generation = sqlx::query_scalar!(
        "update relay_breakers set state = 'half_open', generation = generation + 1, probe_by = $3,
                until = clock_timestamp() + $4, changed_at = clock_timestamp()
         where relay_id = $1 and generation = $2
           and (state = 'open' and until <= clock_timestamp()
                or state = 'half_open' and (until <= clock_timestamp() or not exists (
                    select from processes where process_id = probe_by
                    and heartbeat_at > clock_timestamp() - $5::interval)))
         returning generation",
        relay,
        generation,
        process,
        interval(PROBE_PATIENCE),
        interval(lease),
    )
    .fetch_optional(db)
    .await?;
    Ok(generation)
}

/// The relay was changed, its password say: the next session may find out at once.
pub async fn hasten(conn: &mut PgConnection, relay: Uuid) -> Result<()> {
    sqlx::query!(
        "update relay_breakers set state = 'open', until = clock_timestamp(), probe_by = null,
                generation = generation + 1, rest = 0, changed_at = clock_timestamp()
         where relay_id = $1 and state <> 'closed'",
        relay,
    )
    .execute(conn)
    .await?;
    Ok(())
}
