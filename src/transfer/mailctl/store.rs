//! Reads the SQLite file of mailctl, and never writes to it. Columns that came later may be absent.

use std::path::Path;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Row as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use super::NotYet;

pub struct Key {
    pub name: String,
    pub hash: String,
    pub prefix: String,
    pub scopes: Vec<String>,
    pub suppression_exempt: bool,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub created_at: Option<DateTime<Utc>>,
}

/// An SMTP account, in the fields by which a relay is made.
pub struct Account {
    pub id: String,
    pub name: String,
    pub fields: Value,
}

pub struct Suppression {
    pub address: String,
    pub reason: String,
    pub source: Option<String>,
    pub note: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
}

/// What the file holds.
pub struct Source {
    pub keys: Vec<Key>,
    pub accounts: Vec<Account>,
    pub suppressions: Vec<Suppression>,
    /// Rows of the tables for which there is no place yet.
    pub others: Vec<NotYet>,
}

/// Reads the file.
pub async fn read(file: &Path) -> anyhow::Result<Source> {
    if !file.is_file() {
        bail!("{} is no file", file.display());
    }
    let options =
        SqliteConnectOptions::new().filename(file).read_only(true).create_if_missing(false);
    let said = || format!("{} cannot be read as a database of mailctl", file.display());
    let mut db = options.connect().await.with_context(said)?;
    everything(&mut db).await.with_context(said)
}

async fn everything(db: &mut SqliteConnection) -> anyhow::Result<Source> {
    let tables: Vec<String> = sqlx::query("select name from sqlite_master where type = 'table'")
        .fetch_all(&mut *db)
        .await?
        .iter()
        .filter_map(|row| row.try_get(0).ok())
        .collect();
    let has = |name: &str| tables.iter().any(|it| it == name);
    if !has("smtp_accounts") || !has("api_keys") {
        bail!("it has no tables smtp_accounts and api_keys");
    }
    let keys = rows(db, "select * from api_keys order by created_at, id").await?;
    let accounts = rows(
        db,
        "select smtp_accounts.*, domains.name as domain_name from smtp_accounts
         left join domains on domains.id = smtp_accounts.domain_id order by smtp_accounts.created_at, smtp_accounts.id",
    )
    .await?;
    let suppressions = match has("suppressions") {
        true => rows(db, "select * from suppressions order by created_at, id").await?,
        false => Vec::new(),
    };
    let mut others = Vec::new();
    for table in ["domains", "users", "mailboxes", "aliases", "webhooks"] {
        if has(table) {
            let count = format!("select count(*) from {table}");
            let rows = sqlx::query(AssertSqlSafe(count)).fetch_one(&mut *db).await?.try_get(0)?;
            others.push(NotYet { table, rows, names: names(db, table).await? });
        }
    }
    Ok(Source {
        keys: keys.iter().map(key).collect(),
        accounts: accounts.iter().map(account).collect(),
        suppressions: suppressions.iter().map(suppression).collect(),
        others,
    })
}

async fn names(db: &mut SqliteConnection, table: &str) -> anyhow::Result<Vec<String>> {
    let rows = match table {
        "domains" => rows(db, "select name from domains order by name").await?,
        "users" => rows(db, "select email as name from users order by email").await?,
        _ => Vec::new(),
    };
    Ok(rows.iter().filter_map(|row| text(row, "name")).collect())
}

async fn rows(db: &mut SqliteConnection, sql: &'static str) -> anyhow::Result<Vec<SqliteRow>> {
    Ok(sqlx::query(sql).fetch_all(db).await?)
}

fn text(row: &SqliteRow, column: &str) -> Option<String> {
    row.try_get::<Option<String>, _>(column).ok().flatten()
}

fn number(row: &SqliteRow, column: &str) -> Option<i64> {
    row.try_get::<Option<i64>, _>(column).ok().flatten()
}

/// Seconds since 1970.
fn time(row: &SqliteRow, column: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(number(row, column)?, 0)
}

fn key(row: &SqliteRow) -> Key {
    let scopes = text(row, "scopes").and_then(|it| serde_json::from_str(&it).ok());
    Key {
        name: text(row, "name").unwrap_or_default(),
        hash: text(row, "hash").unwrap_or_default(),
        prefix: text(row, "prefix").unwrap_or_default(),
        scopes: scopes.unwrap_or_default(),
        suppression_exempt: number(row, "suppression_exempt") == Some(1),
        expires_at: time(row, "expires_at"),
        revoked_at: time(row, "revoked_at"),
        created_at: time(row, "created_at"),
    }
}

fn account(row: &SqliteRow) -> Account {
    let flag = |column| number(row, column).map(|it| it == 1);
    Account {
        id: text(row, "id").unwrap_or_default(),
        name: text(row, "name").unwrap_or_default(),
        fields: json!({
            "name": text(row, "name"), "host": text(row, "host"), "port": number(row, "port"),
            "secure": flag("secure"), "requireTls": flag("require_tls").unwrap_or(false),
            "rejectUnauthorized": flag("reject_unauthorized"), "minTlsVersion": text(row, "min_tls_version"),
            "userEnvVar": text(row, "user_env_var"), "passwordEnvVar": text(row, "password_env_var"),
            "fromAddress": text(row, "from_address"), "fromName": text(row, "from_name"),
            "priority": number(row, "priority"), "active": flag("active").unwrap_or(true),
            "domain": text(row, "domain_name"),
        }),
    }
}

fn suppression(row: &SqliteRow) -> Suppression {
    Suppression {
        address: text(row, "address").unwrap_or_default(),
        reason: text(row, "reason").unwrap_or_else(|| "manual".to_owned()),
        source: text(row, "source"),
        note: text(row, "note"),
        created_at: time(row, "created_at"),
    }
}
