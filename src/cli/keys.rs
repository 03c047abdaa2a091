//! `postroom create-api-key`, `postroom keys`.

use anyhow::{Context as _, bail};
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::{
    accounts::api_keys::{self, Key, KeyMode, NewKey, Scope},
    app::{self, App},
    audit::Who,
    config::Config,
    database,
    error::Error,
    serve,
};

/// A key to be made.
#[derive(Debug, Args)]
pub struct New {
    /// What the key is for.
    #[arg(long)]
    pub name: String,
    /// send, read, admin; with commas.
    #[arg(long, value_delimiter = ',', required = true, value_parser = scope)]
    pub scopes: Vec<Scope>,
    /// The key stops working after this many days.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub expires_in_days: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// All keys, revoked ones too. The keys themselves are kept nowhere.
    List {
        /// A JSON array instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key, for good.
    Revoke {
        /// Its id, or its first eight characters.
        key: String,
    },
}

fn scope(text: &str) -> Result<Scope, String> {
    match text.trim() {
        "send" => Ok(Scope::Send),
        "read" => Ok(Scope::Read),
        "admin" => Ok(Scope::Admin),
        _ => Err("must be send, read or admin".to_owned()),
    }
}

/// Makes a key, and prints it this once.
pub async fn create(config: Config, new: New) -> anyhow::Result<()> {
    let app = app_of(config)?;
    let expires_at = new.expires_in_days.map(|days| app::now() + TimeDelta::days(i64::from(days)));
    let new = NewKey {
        name: new.name,
        scopes: new.scopes,
        mode: KeyMode::Live,
        suppression_exempt: false,
        sender_domains: None,
        sender_addresses: None,
        networks: None,
        on_unknown: None,
        expires_at,
    };
    match api_keys::create(&app, &Who::command_line(), new).await {
        Ok((_, plain)) => {
            println!("{plain}");
            Ok(())
        }
        Err(Error::Invalid { issues, .. }) => {
            let said: Vec<_> =
                issues.iter().map(|issue| format!("{}: {}", issue.path, issue.message)).collect();
            bail!("{}", said.join("; "))
        }
        Err(error) => Err(error).context("the key could not be made"),
    }
}

/// Lists or revokes keys.
pub async fn keys(config: Config, command: Keys) -> anyhow::Result<()> {
    let app = app_of(config)?;
    let keys = api_keys::list(&app).await.context("the keys could not be read")?;
    match command {
        Keys::List { json: true } => println!("{}", serde_json::to_string_pretty(&keys)?),
        Keys::List { json: false } => print!("{}", table(&keys)),
        Keys::Revoke { key } => {
            let id = find(&keys, &key)?;
            api_keys::revoke(&app, &Who::command_line(), id)
                .await
                .context("the key could not be revoked")?;
            println!("revoked");
        }
    }
    Ok(())
}

fn app_of(config: Config) -> anyhow::Result<App> {
    let pools = database::pools(&config.database)?;
    Ok(serve::app(config, &pools))
}

fn find(keys: &[Key], named: &str) -> anyhow::Result<Uuid> {
    // Whoever pastes a whole key means the key; it is not said again.
    let prefix = if named.len() == 64 { &named[..8] } else { named };
    let is_meant = |it: &&Key| it.prefix == prefix || it.id.to_string() == named;
    keys.iter().find(is_meant).map(|it| it.id).context("there is no such key")
}

fn table(keys: &[Key]) -> String {
    let mut text =
        format!("{:<36}  {:<8}  {:<15}  {:<8}  NAME\n", "ID", "PREFIX", "SCOPES", "STATE");
    let now = app::now();
    for it in keys {
        let state = match (it.revoked_at, it.expires_at) {
            (Some(_), _) => "revoked",
            (None, Some(at)) if at <= now => "expired",
            (None, _) => "good",
        };
        let scopes: Vec<&str> = it.scopes.iter().map(|it| it.as_str()).collect();
        let scopes = scopes.join(",");
        text += &format!("{}  {:<8}  {scopes:<15}  {state:<8}  {}\n", it.id, it.prefix, it.name);
    }
    text
}
