//! API keys: 64 hexadecimal characters, of which the first eight find the row and none is stored.
//!
//! A key may be bound to sender domains, sender addresses and source networks. No binding is
//! unrestricted; an empty one refuses everything.

mod mode;
mod routes;
mod store;

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    address::{DomainName, EmailAddress},
    app::App,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
    on_unknown::OnUnknown,
    secrets,
};

pub use mode::KeyMode;
pub use routes::router;

/// What a key may do. `admin` does not imply `send`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = KeyScope)]
pub enum Scope {
    /// Send, and see its own messages.
    Send,
    /// See everything.
    Read,
    /// See and configure everything.
    Admin,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }

    /// The scope of this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Send, Self::Read, Self::Admin].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A key as everyone with `admin` may see it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    pub id: Uuid,
    pub name: String,
    /// The first eight characters of the key.
    pub prefix: String,
    pub scopes: Vec<Scope>,
    pub mode: KeyMode,
    /// Sends to suppressed recipients too.
    pub suppression_exempt: bool,
    /// Sender domains it may use; null is any.
    pub sender_domains: Option<Vec<String>>,
    /// Sender addresses it may use, besides those of `senderDomains`; null is any.
    pub sender_addresses: Option<Vec<String>>,
    /// Networks it may be used from; null is any.
    #[schema(value_type = Option<Vec<String>>)]
    pub networks: Option<Vec<IpNet>>,
    /// What to do when a relay gave no answer after the final dot; null inherits.
    pub on_unknown: Option<String>,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

impl Key {
    pub fn admits_source(&self, source: IpAddr) -> bool {
        self.networks
            .as_ref()
            .is_none_or(|networks| networks.iter().any(|net| net.contains(&source)))
    }

    /// Whether the key's bindings permit this sender.
    pub fn admits_sender(&self, sender: &EmailAddress) -> bool {
        if self.sender_domains.is_none() && self.sender_addresses.is_none() {
            return true;
        }
        let names = |list: &Option<Vec<String>>, name: &str| {
            list.as_ref().is_some_and(|list| list.iter().any(|it| it == name))
        };
        names(&self.sender_domains, sender.domain().as_str())
            || names(&self.sender_addresses, &sender.lookup_key())
    }
}

/// A key to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewKey {
    /// 1 to 100 characters.
    pub name: String,
    pub scopes: Vec<Scope>,
    /// `live` if absent.
    #[serde(default)]
    pub mode: KeyMode,
    #[serde(default)]
    pub suppression_exempt: bool,
    #[schema(value_type = Option<Vec<String>>)]
    pub sender_domains: Option<Vec<DomainName>>,
    #[schema(value_type = Option<Vec<String>>)]
    pub sender_addresses: Option<Vec<EmailAddress>>,
    #[schema(value_type = Option<Vec<String>>)]
    pub networks: Option<Vec<IpNet>>,
    /// `hold` or `resend`.
    pub on_unknown: Option<OnUnknown>,
    pub expires_at: Option<DateTime<Utc>>,
}

/// A change of a key; what is absent stays as it is, null takes a binding away.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyPatch {
    #[serde(deserialize_with = "not_null")]
    pub name: Option<String>,
    /// Messages that were accepted already keep the mode they were accepted in.
    #[serde(deserialize_with = "not_null")]
    pub mode: Option<KeyMode>,
    #[serde(deserialize_with = "not_null")]
    pub suppression_exempt: Option<bool>,
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub sender_domains: Option<Option<Vec<DomainName>>>,
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub sender_addresses: Option<Option<Vec<EmailAddress>>>,
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>)]
    pub networks: Option<Option<Vec<IpNet>>>,
    #[serde(deserialize_with = "present")]
    pub on_unknown: Option<Option<OnUnknown>>,
    #[serde(deserialize_with = "present")]
    pub expires_at: Option<Option<DateTime<Utc>>>,
}

/// Tells `null` (`Some(None)`) from absent (`None`).
fn present<'de, D, T>(deserializer: D) -> std::result::Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// A field that may be absent, and not null.
fn not_null<'de, D, T>(deserializer: D) -> std::result::Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// The key behind a presented text, if it is good now.
pub async fn authenticate(app: &App, presented: &str) -> Result<Key> {
    if !secrets::is_api_key(presented) {
        return Err(Error::Unauthenticated);
    }
    let (key, hash) =
        store::by_prefix(&app.db, &presented[..8]).await?.ok_or(Error::Unauthenticated)?;
    let now = app.now();
    let good = secrets::same_secret(&hash, &secrets::hash_token(presented))
        && key.revoked_at.is_none()
        && key.expires_at.is_none_or(|at| at > now);
    if !good {
        return Err(Error::Unauthenticated);
    }
    // Once a minute is enough to see whether a key is in use, and keeps the row cool.
    if key.last_used_at.is_none_or(|at| now - at > chrono::TimeDelta::minutes(1)) {
        store::touch(&app.db, key.id).await?;
    }
    Ok(key)
}

/// Whether there is a key of this id.
pub async fn exists(conn: &mut sqlx::PgConnection, id: Uuid) -> Result<bool> {
    Ok(store::lock(conn, id).await?.is_some())
}

pub async fn list(app: &App) -> Result<Vec<Key>> {
    store::all(&app.db).await
}

/// Makes a key; the text of it is in the answer, and nowhere else.
pub async fn create(app: &App, who: &Who, new: NewKey) -> Result<(Key, String)> {
    let plain = secrets::new_api_key();
    let key = create_from(app, who, new, &plain).await?;
    Ok((key, plain))
}

/// Makes a key of a text that is kept elsewhere.
pub async fn create_from(app: &App, who: &Who, new: NewKey, plain: &str) -> Result<Key> {
    check_name(&new.name)?;
    if new.scopes.is_empty() {
        return Err(Error::invalid("scopes", "at least one of send, read, admin"));
    }
    if new.expires_at.is_some_and(|at| at <= app.now()) {
        return Err(Error::invalid("expiresAt", "must be in the future"));
    }
    let mut tx = app.db.begin().await?;
    let key = store::insert(&mut tx, &plain[..8], &secrets::hash_token(plain), &new).await?;
    written(&mut tx, who, "api_key.created", None, &key).await?;
    tx.commit().await?;
    Ok(key)
}

/// A key that was made elsewhere, of which only the hash is known: SHA-256 of the whole key, in hex.
#[derive(Debug, Clone)]
pub struct Adopted {
    pub name: String,
    pub prefix: String,
    pub hash: String,
    pub scopes: Vec<Scope>,
    pub suppression_exempt: bool,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub created_at: Option<DateTime<Utc>>,
}

/// Takes over a key; one whose prefix is known stays as it is. Answers whether it is new here.
pub async fn adopt(conn: &mut sqlx::PgConnection, who: &Who, adopted: &Adopted) -> Result<bool> {
    let Some(id) = store::adopt(conn, adopted).await? else { return Ok(false) };
    let key = store::lock(conn, id).await?.ok_or(Error::NotFound("API key"))?;
    written(conn, who, "api_key.created", None, &key).await?;
    Ok(true)
}

pub async fn update(app: &App, who: &Who, id: Uuid, patch: KeyPatch) -> Result<Key> {
    if let Some(name) = &patch.name {
        check_name(name)?;
    }
    let mut tx = app.db.begin().await?;
    let before = store::lock(&mut tx, id).await?.ok_or(Error::NotFound("API key"))?;
    if before.revoked_at.is_some() {
        return Err(Error::conflict("KEY_REVOKED", "a revoked key cannot be changed"));
    }
    let after = store::update(&mut tx, id, &patch).await?;
    written(&mut tx, who, "api_key.changed", Some(&before), &after).await?;
    tx.commit().await?;
    Ok(after)
}

/// Revokes a key; one that is revoked already stays as it is.
pub async fn revoke(app: &App, who: &Who, id: Uuid) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let before = store::lock(&mut tx, id).await?.ok_or(Error::NotFound("API key"))?;
    if before.revoked_at.is_none() {
        let after = store::revoke(&mut tx, id).await?;
        written(&mut tx, who, "api_key.revoked", Some(&before), &after).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn written(
    conn: &mut sqlx::PgConnection,
    who: &Who,
    action: &'static str,
    before: Option<&Key>,
    after: &Key,
) -> Result<()> {
    audit::record(conn, who, action, ("api_key", after.id), before, Some(after)).await?;
    let data = serde_json::json!({ "prefix": after.prefix, "name": after.name });
    events::emit(conn, &[Event { kind: action, subject: "api_key", subject_id: after.id, data }])
        .await
}

fn check_name(name: &str) -> Result<()> {
    let length = name.encode_utf16().count();
    if !(1..=100).contains(&length) || name.chars().any(char::is_control) {
        return Err(Error::invalid(
            "name",
            "1 to 100 characters, none of them a control character",
        ));
    }
    Ok(())
}
