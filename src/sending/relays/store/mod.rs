//! The SQL of `relays`; of the breakers that all processes share, and of the processes among which a
//! relay's connections are divided.

pub(super) mod breaker;
pub(super) mod processes;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::wire::{self, NewRelay};
use crate::{error::Result, on_unknown::OnUnknown, queue::Channel};

#[derive(Debug, Clone)]
pub struct Row {
    pub relay_id: Uuid,
    pub kind: String,
    pub name: String,
    pub host: String,
    pub port: i32,
    pub secure: bool,
    pub require_tls: bool,
    pub reject_unauthorized: Option<bool>,
    pub min_tls_version: Option<String>,
    pub user_env_var: Option<String>,
    pub password_env_var: Option<String>,
    pub username: Option<String>,
    pub password_sealed: Option<String>,
    pub allow_clear_auth: bool,
    pub helo_name: Option<String>,
    pub from_address: String,
    pub from_name: Option<String>,
    pub domain: Option<String>,
    pub any_sender: bool,
    pub priority: i32,
    pub active: bool,
    pub max_connections: i32,
    pub max_per_minute: Option<i32>,
    pub on_unknown: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

pub(super) async fn all(db: &PgPool) -> Result<Vec<Row>> {
    let rows = sqlx::query_as!(
        Row,
        "select relay_id, kind, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                user_env_var, password_env_var, username, password_sealed, allow_clear_auth, helo_name,
                from_address, from_name, domain, any_sender, priority, active, max_connections, max_per_minute,
                on_unknown, created_at, updated_at
         from relays order by priority, relay_id"
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

pub(super) async fn one(db: &PgPool, id: Uuid) -> Result<Option<Row>> {
    let rows = all(db).await?;
    Ok(rows.into_iter().find(|row| row.relay_id == id))
}

pub(super) async fn lock(conn: &mut PgConnection, id: Uuid) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        "select relay_id, kind, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                user_env_var, password_env_var, username, password_sealed, allow_clear_auth, helo_name,
                from_address, from_name, domain, any_sender, priority, active, max_connections, max_per_minute,
                on_unknown, created_at, updated_at
         from relays where relay_id = $1 for update",
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    id: Uuid,
    new: &NewRelay,
    password_sealed: Option<&str>,
) -> Result<Row> {
    let row = sqlx::query_as!(
        Row,
        "insert into relays (relay_id, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                             user_env_var, password_env_var, username, password_sealed, allow_clear_auth,
                             helo_name, from_address, from_name, domain, any_sender, priority, active,
                             max_connections, on_unknown, max_per_minute)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
                 $21, $22, $23)
         returning relay_id, kind, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                   user_env_var, password_env_var, username, password_sealed, allow_clear_auth, helo_name,
                   from_address, from_name, domain, any_sender, priority, active, max_connections, max_per_minute,
                   on_unknown, created_at, updated_at",
        id,
        new.name,
        new.host,
        i32::from(new.port),
        new.secure,
        new.require_tls,
        new.reject_unauthorized,
        new.min_tls_version.map(wire::MinTls::as_str),
        new.user_env_var,
        new.password_env_var,
        new.username,
        password_sealed,
        new.allow_clear_auth,
        new.helo_name.as_ref().map(crate::address::DomainName::as_str),
        new.from_address.to_string(),
        new.from_name,
        new.domain.as_ref().map(crate::address::DomainName::as_str),
        new.any_sender,
        new.priority,
        new.active,
        new.max_connections,
        new.on_unknown.map(OnUnknown::as_str),
        new.max_per_minute,
    )
    .fetch_one(conn)
    .await?;
    Ok(row)
}

/// The sandbox's relay, if it was not there.
pub(super) async fn insert_sandbox(conn: &mut PgConnection) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        "insert into relays (relay_id, kind, name, host, port, secure, from_address, any_sender, priority)
         values ($1, 'sandbox', 'sandbox', '127.0.0.1', 0, false, 'postroom@sandbox.example', true, 1000)
         on conflict do nothing
         returning relay_id, kind, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                   user_env_var, password_env_var, username, password_sealed, allow_clear_auth, helo_name,
                   from_address, from_name, domain, any_sender, priority, active, max_connections, max_per_minute,
                   on_unknown, created_at, updated_at",
        Uuid::now_v7(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

pub(super) async fn replace(conn: &mut PgConnection, row: &Row) -> Result<Row> {
    let row = sqlx::query_as!(
        Row,
        "update relays set name = $2, host = $3, port = $4, secure = $5, require_tls = $6, reject_unauthorized = $7,
                min_tls_version = $8, user_env_var = $9, password_env_var = $10, username = $11,
                password_sealed = $12, allow_clear_auth = $13, helo_name = $14, from_address = $15,
                from_name = $16, domain = $17, any_sender = $18, priority = $19, active = $20,
                max_connections = $21, on_unknown = $22, max_per_minute = $23, updated_at = clock_timestamp()
         where relay_id = $1
         returning relay_id, kind, name, host, port, secure, require_tls, reject_unauthorized, min_tls_version,
                   user_env_var, password_env_var, username, password_sealed, allow_clear_auth, helo_name,
                   from_address, from_name, domain, any_sender, priority, active, max_connections, max_per_minute,
                   on_unknown, created_at, updated_at",
        row.relay_id,
        row.name,
        row.host,
        row.port,
        row.secure,
        row.require_tls,
        row.reject_unauthorized,
        row.min_tls_version,
        row.user_env_var,
        row.password_env_var,
        row.username,
        row.password_sealed,
        row.allow_clear_auth,
        row.helo_name,
        row.from_address,
        row.from_name,
        row.domain,
        row.any_sender,
        row.priority,
        row.active,
        row.max_connections,
        row.on_unknown,
        row.max_per_minute,
    )
    .fetch_one(conn)
    .await?;
    Ok(row)
}

pub(super) async fn delete(conn: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!("delete from relays where relay_id = $1", id).execute(conn).await?;
    Ok(())
}

/// The relays with a sealed password, locked: id, name, password.
pub(super) async fn sealed(conn: &mut PgConnection) -> Result<Vec<(Uuid, String, String)>> {
    let rows = sqlx::query!(
        r#"select relay_id, name, password_sealed as "sealed!" from relays
           where password_sealed is not null order by relay_id for update"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.relay_id, row.name, row.sealed)).collect())
}

/// The same password, sealed otherwise: the relay is not another one.
pub(super) async fn reseal(conn: &mut PgConnection, id: Uuid, sealed: &str) -> Result<()> {
    sqlx::query!("update relays set password_sealed = $2 where relay_id = $1", id, sealed)
        .execute(conn)
        .await?;
    Ok(())
}

/// Tells every process, when this transaction commits.
pub(super) async fn notify(conn: &mut PgConnection, channel: Channel) -> Result<()> {
    sqlx::query!("select pg_notify($1, '')", channel.as_str()).execute(conn).await?;
    Ok(())
}
