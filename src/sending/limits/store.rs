//! The SQL of `limits` and `limit_spent`.

use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Bucket, Limit, Per, Scope, window::Window};
use crate::{error::Result, queue::Channel};

/// A limit as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub limit_id: Uuid,
    pub scope: String,
    pub value: String,
    pub per: String,
    pub most: i32,
}

impl Row {
    /// None for a limit that only a newer binary knows.
    pub fn limit(self) -> Option<Limit> {
        Some(Limit {
            id: self.limit_id,
            scope: Scope::parse(&self.scope)?,
            value: self.value,
            per: Per::parse(&self.per)?,
            most: self.most,
        })
    }
}

pub(super) async fn all(db: &PgPool) -> Result<Vec<Limit>> {
    let rows = sqlx::query_as!(
        Row,
        "select limit_id, scope, value, per, most from limits order by scope, value, per desc"
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().filter_map(Row::limit).collect())
}

pub(super) async fn lock(
    conn: &mut PgConnection,
    scope: Scope,
    value: &str,
    per: Per,
) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        "select limit_id, scope, value, per, most from limits
         where scope = $1 and value = $2 and per = $3 for update",
        scope.as_str(),
        value,
        per.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// Sets a limit; one that is there keeps its id.
pub(super) async fn put(
    conn: &mut PgConnection,
    scope: Scope,
    value: &str,
    per: Per,
    most: i32,
) -> Result<Row> {
    let row = sqlx::query_as!(
        Row,
        "insert into limits (limit_id, scope, value, per, most) values ($1, $2, $3, $4, $5)
         on conflict on constraint limits_scope_key do update set most = excluded.most
         returning limit_id, scope, value, per, most",
        Uuid::now_v7(),
        scope.as_str(),
        value,
        per.as_str(),
        most,
    )
    .fetch_one(conn)
    .await?;
    Ok(row)
}

/// Takes a limit away; answers what it was.
pub(super) async fn delete(conn: &mut PgConnection, id: Uuid) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        "delete from limits where limit_id = $1 returning limit_id, scope, value, per, most",
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// What is left of a limit, and how many seconds until more is.
pub(super) struct Left {
    pub taken: i32,
    pub left: i32,
    pub free_in: f64,
}

/// Takes as many of `wanted` as are left, by the database's clock. A negative number gives back.
pub(super) async fn spend(db: &PgPool, bucket: &Bucket, most: i32, wanted: i32) -> Result<Left> {
    let width = bucket.per.width();
    let mut tx = db.begin().await?;
    let now = now(&mut tx).await?;
    let new = Window::empty(now, width);
    sqlx::query!(
        "insert into limit_spent (scope, value, per, head, counts) values ($1, $2, $3, $4, $5)
         on conflict on constraint limit_spent_pkey do nothing",
        bucket.scope.as_str(),
        bucket.value,
        bucket.per.as_str(),
        new.head,
        &new.counts,
    )
    .execute(&mut *tx)
    .await?;
    let row = sqlx::query!(
        "select head, counts from limit_spent where scope = $1 and value = $2 and per = $3 for update",
        bucket.scope.as_str(),
        bucket.value,
        bucket.per.as_str(),
    )
    .fetch_one(&mut *tx)
    .await?;
    let mut window = Window::kept(row.head, row.counts);
    window.advance(now, width);
    let taken = if wanted < 0 {
        window.give_back(-wanted);
        wanted
    } else {
        window.take(most, wanted)
    };
    sqlx::query!(
        "update limit_spent set head = $4, counts = $5 where scope = $1 and value = $2 and per = $3",
        bucket.scope.as_str(),
        bucket.value,
        bucket.per.as_str(),
        window.head,
        &window.counts,
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(Left { taken, left: window.left(most), free_in: window.free_in(most, now, width) })
}

/// What is left, without taking any.
pub(super) async fn left(db: &PgPool, bucket: &Bucket, most: i32) -> Result<Left> {
    let row = sqlx::query!(
        r#"select head, counts, extract(epoch from clock_timestamp())::float8 as "now!"
           from limit_spent where scope = $1 and value = $2 and per = $3"#,
        bucket.scope.as_str(),
        bucket.value,
        bucket.per.as_str(),
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(Left { taken: 0, left: most, free_in: 0.0 }) };
    let width = bucket.per.width();
    let mut window = Window::kept(row.head, row.counts);
    window.advance(row.now, width);
    Ok(Left { taken: 0, left: window.left(most), free_in: window.free_in(most, row.now, width) })
}

/// Forgets what was spent of limits that nobody has asked for in two days.
pub(super) async fn forget(db: &PgPool) -> Result<()> {
    for per in Per::ALL {
        sqlx::query!(
            "delete from limit_spent where per = $1
             and head * $2::float8 < extract(epoch from clock_timestamp() - interval '2 days')",
            per.as_str(),
            per.width(),
        )
        .execute(db)
        .await?;
    }
    Ok(())
}

async fn now(conn: &mut PgConnection) -> Result<f64> {
    let now =
        sqlx::query_scalar!(r#"select extract(epoch from clock_timestamp())::float8 as "now!""#)
            .fetch_one(conn)
            .await?;
    Ok(now)
}

/// Tells every process, when this transaction commits.
pub(super) async fn notify(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("select pg_notify($1, '')", Channel::Relays.as_str()).execute(conn).await?;
    Ok(())
}
