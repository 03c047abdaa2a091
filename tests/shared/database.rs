//! A database for one test. The cluster it lies in ends with the run.

use sqlx::{Connection as _, PgConnection, PgPool, postgres::PgConnectOptions};
use uuid::Uuid;

/// A new, empty database: a pool on it, and its URL.
pub async fn new() -> (PgPool, String) {
    let base = postroom::config::environment()
        .get("DATABASE_URL")
        .cloned()
        .expect("the tests need DATABASE_URL: run them by `make test`");
    let name = format!("test_{}", Uuid::new_v4().simple());
    let options: PgConnectOptions = base.parse().unwrap();
    let mut admin = PgConnection::connect_with(&options).await.unwrap();
    let create = sqlx::AssertSqlSafe(format!("create database {name}"));
    sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
    let (front, query) = base.split_once('?').unwrap_or((base.as_str(), ""));
    let (server, _) = front.rsplit_once('/').expect("the URL names a database");
    let pool = PgPool::connect_lazy_with(options.database(&name));
    (pool, format!("{server}/{name}?{query}"))
}
