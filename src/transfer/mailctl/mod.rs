//! Taking over from mailctl: its SMTP accounts, API keys and suppressions.
//!
//! API keys go on working: both keep the SHA-256 of the whole key. Credentials of relays are named
//! as variables of the environment there, and stay so. A second run changes nothing: relays are
//! known by their ids, keys by their prefixes, suppressions by their addresses.

mod store;

use anyhow::Context as _;
use serde::Serialize;

use crate::{
    accounts::api_keys::{self, Scope},
    app::App,
    audit::Who,
    error::Error,
    sending::{
        relays::{self, NewRelay},
        suppressions,
    },
};

pub use store::{Source, read};

/// A row, and what is to be said of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    pub name: String,
    pub why: String,
}

/// What became of the rows of a table.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Table {
    pub table: &'static str,
    pub found: usize,
    pub taken: usize,
    /// There already.
    pub known: usize,
    pub left_out: Vec<Said>,
    /// Of rows that were taken over.
    pub notes: Vec<Said>,
}

/// What became of everything.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub tables: Vec<Table>,
    /// Tables for which there is no place yet.
    pub not_yet: Vec<NotYet>,
}

/// What has no place yet: somebody has to make it anew once there is one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotYet {
    pub table: &'static str,
    pub rows: i64,
    /// The names of domains and the addresses of users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl Table {
    fn of(table: &'static str, found: usize) -> Self {
        Self { table, found, ..Self::default() }
    }

    fn takes(&mut self, is_new: bool) {
        if is_new { self.taken += 1 } else { self.known += 1 }
    }

    fn leaves(&mut self, name: &str, why: impl Into<String>) {
        self.left_out.push(Said { name: name.to_owned(), why: why.into() });
    }

    fn notes(&mut self, name: &str, why: impl Into<String>) {
        self.notes.push(Said { name: name.to_owned(), why: why.into() });
    }
}

/// Takes everything over, in one transaction; a dry run takes it back.
pub async fn import(app: &App, who: &Who, source: Source, dry_run: bool) -> anyhow::Result<Report> {
    let mut tx = app.db.begin().await.context("the database does not answer")?;
    let tables = vec![
        keys(&mut tx, who, source.keys).await?,
        accounts(app, &mut tx, who, source.accounts).await?,
        suppressed(&mut tx, who, source.suppressions).await?,
    ];
    if dry_run {
        tx.rollback().await?;
    } else {
        tx.commit().await.context("nothing was taken over")?;
    }
    Ok(Report { tables, not_yet: source.others })
}

async fn keys(
    conn: &mut sqlx::PgConnection,
    who: &Who,
    keys: Vec<store::Key>,
) -> anyhow::Result<Table> {
    let mut table = Table::of("api_keys", keys.len());
    for key in keys {
        let scopes: Vec<Scope> = key.scopes.iter().filter_map(|it| Scope::parse(it)).collect();
        let is_hash = |text: &str, length| {
            text.len() == length && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !is_hash(&key.prefix, 8) || !is_hash(&key.hash, 64) {
            table.leaves(&key.name, "its prefix or hash is not of the known form");
        } else if scopes.is_empty() {
            table.leaves(&key.name, "none of its scopes means anything: it can do nothing");
        } else {
            if scopes.len() < key.scopes.len() {
                table.notes(&key.name, "scopes that mean nothing were dropped");
            }
            let adopted = api_keys::Adopted {
                name: key.name.chars().filter(|it| !it.is_control()).take(100).collect(),
                prefix: key.prefix,
                hash: key.hash,
                scopes,
                suppression_exempt: key.suppression_exempt,
                expires_at: key.expires_at,
                revoked_at: key.revoked_at,
                created_at: key.created_at,
            };
            table.takes(api_keys::adopt(conn, who, &adopted).await?);
        }
    }
    Ok(table)
}

async fn accounts(
    app: &App,
    conn: &mut sqlx::PgConnection,
    who: &Who,
    accounts: Vec<store::Account>,
) -> anyhow::Result<Table> {
    let mut table = Table::of("smtp_accounts", accounts.len());
    for account in accounts {
        let Ok(id) = account.id.parse() else {
            table.leaves(&account.name, "its id is no UUID");
            continue;
        };
        let mut fields = account.fields;
        for name in ["userEnvVar", "passwordEnvVar"] {
            let variable = fields[name].as_str().map(str::to_owned);
            if let Some(variable) = variable.filter(|it| !it.starts_with("SMTP_")) {
                let why = format!(
                    "taken over inactive, without {variable}: rename that variable so that it begins with SMTP_, \
                     name it here, and activate the relay"
                );
                table.notes(&account.name, why);
                fields[name] = serde_json::Value::Null;
                fields["active"] = false.into();
            }
        }
        let relay = serde_path_to_error::deserialize::<_, NewRelay>(fields)
            .map_err(|error| format!("{}: {}", error.path(), error.inner()))
            .and_then(|relay| match relay.check(&app.config) {
                Ok(()) => Ok(relay),
                Err(Error::Invalid { issues, .. }) => {
                    let said = issues.iter().map(|it| format!("{}: {}", it.path, it.message));
                    Err(said.collect::<Vec<_>>().join("; "))
                }
                Err(error) => Err(error.to_string()),
            });
        match relay {
            Ok(relay) => table.takes(relays::adopt(conn, who, id, &relay).await?),
            Err(why) => table.leaves(&account.name, why),
        }
    }
    Ok(table)
}

async fn suppressed(
    conn: &mut sqlx::PgConnection,
    who: &Who,
    rows: Vec<store::Suppression>,
) -> anyhow::Result<Table> {
    let mut table = Table::of("suppressions", rows.len());
    for row in rows {
        let address = row.address.trim().to_lowercase();
        if !address.contains('@') || address.contains('\0') {
            table.leaves(&row.address, "this is no address");
            continue;
        }
        let new = suppressions::Suppression {
            lookup_key: address
                .parse()
                .map_or(address, |it: crate::address::EmailAddress| it.lookup_key()),
            reason: row.reason,
            source: row.source.unwrap_or_else(|| "mailctl".to_owned()),
            note: row.note,
            created_at: row.created_at,
        };
        table.takes(suppressions::adopt(conn, &new).await?);
    }
    if table.taken > 0 {
        suppressions::told(conn, who, table.taken).await?;
    }
    Ok(table)
}
