//! Which lanes have due work, and when the next work becomes due.

use std::time::Duration;

use sqlx::PgPool;

use crate::error::Result;

/// What a look at the queue found.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// Lanes with work that is due.
    pub lanes: Vec<String>,
    /// How long until the next work is due, by the database's clock.
    pub next: Option<Duration>,
}

/// Looks at all lanes of this kind: skips from lane to lane along the index, and asks each for its
/// first due job and its first later one, by priority.
pub(super) async fn look(db: &PgPool, kind: &str) -> Result<Due> {
    let rows = sqlx::query!(
        r#"with recursive lanes as (
             (select lane from jobs where kind = $1 and state = 'ready' order by lane limit 1)
             union all
             select (select next.lane from jobs next
                     where next.kind = $1 and next.state = 'ready' and next.lane > lanes.lane
                     order by next.lane limit 1)
             from lanes where lanes.lane is not null
         )
         select lane as "lane!", looked.is_due as "is_due!",
                extract(epoch from looked.later - clock_timestamp())::float8 as "later?"
         from lanes cross join lateral (
             select bool_or(exists (
                        select from jobs where kind = $1 and state = 'ready' and jobs.lane = lanes.lane
                        and jobs.priority = p.priority and due_at <= now())) as is_due,
                    min((select due_at from jobs where kind = $1 and state = 'ready' and jobs.lane = lanes.lane
                         and jobs.priority = p.priority and due_at > now() order by due_at limit 1)) as later
             from unnest(array[0, 1, 2]::smallint[]) as p (priority)
         ) as looked
         where lane is not null"#,
        kind,
    )
    .fetch_all(db)
    .await?;
    let next = rows.iter().filter_map(|row| row.later).min_by(f64::total_cmp);
    Ok(Due {
        next: next.map(|wait| Duration::try_from_secs_f64(wait).unwrap_or_default()),
        lanes: rows.into_iter().filter(|row| row.is_due).map(|row| row.lane).collect(),
    })
}
