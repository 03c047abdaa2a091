//! The SQL of `api_keys`.

use chrono::{DateTime, Utc};
use ipnet::IpNet;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Adopted, Key, KeyMode, KeyPatch, NewKey, Scope};
use crate::{
    error::{Error, OnConstraint, Result},
    on_unknown::OnUnknown,
};

struct Row {
    api_key_id: Uuid,
    name: String,
    prefix: String,
    key_hash: String,
    scopes: Vec<String>,
    mode: String,
    suppression_exempt: bool,
    sender_domains: Option<Vec<String>>,
    sender_addresses: Option<Vec<String>>,
    networks: Option<Vec<IpNet>>,
    on_unknown: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl From<Row> for Key {
    fn from(row: Row) -> Self {
        Self {
            id: row.api_key_id,
            name: row.name,
            prefix: row.prefix,
            scopes: row.scopes.iter().filter_map(|it| Scope::parse(it)).collect(),
            mode: KeyMode::from_row(&row.mode),
            suppression_exempt: row.suppression_exempt,
            sender_domains: row.sender_domains,
            sender_addresses: row.sender_addresses,
            networks: row.networks,
            on_unknown: row.on_unknown,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
            created_at: row.created_at,
        }
    }
}

pub(super) async fn all(db: &PgPool) -> Result<Vec<Key>> {
    let rows = sqlx::query_as!(
        Row,
        "select api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at
         from api_keys order by api_key_id"
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(Key::from).collect())
}

/// The key with this prefix, and the hash of its text.
pub(super) async fn by_prefix(db: &PgPool, prefix: &str) -> Result<Option<(Key, String)>> {
    let row = sqlx::query_as!(
        Row,
        "select api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at
         from api_keys where prefix = $1",
        prefix,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| (row.key_hash.clone(), row)).map(|(hash, row)| (row.into(), hash)))
}

pub(super) async fn lock(conn: &mut PgConnection, id: Uuid) -> Result<Option<Key>> {
    let row = sqlx::query_as!(
        Row,
        "select api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at
         from api_keys where api_key_id = $1 for update",
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(Key::from))
}

pub(super) async fn touch(db: &PgPool, id: Uuid) -> Result<()> {
    sqlx::query!("update api_keys set last_used_at = clock_timestamp() where api_key_id = $1", id)
        .execute(db)
        .await?;
    Ok(())
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    prefix: &str,
    hash: &str,
    new: &NewKey,
) -> Result<Key> {
    let scopes: Vec<_> = new.scopes.iter().map(|it| it.as_str().to_owned()).collect();
    let domains = texts(new.sender_domains.as_deref(), |it| it.as_str().to_owned());
    let addresses =
        texts(new.sender_addresses.as_deref(), crate::address::EmailAddress::lookup_key);
    let row = sqlx::query_as!(
        Row,
        "insert into api_keys (api_key_id, name, prefix, key_hash, scopes, suppression_exempt,
                               sender_domains, sender_addresses, networks, on_unknown, expires_at, mode)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         returning api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                   sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at",
        Uuid::now_v7(),
        new.name,
        prefix,
        hash,
        &scopes,
        new.suppression_exempt,
        domains.as_deref(),
        addresses.as_deref(),
        new.networks.as_deref(),
        new.on_unknown.map(OnUnknown::as_str),
        new.expires_at,
        new.mode.as_str(),
    )
    .fetch_one(conn)
    .await
    .on_constraint("api_keys_prefix_key", || {
        Error::conflict("KEY_COLLISION", "two keys begin alike; try again")
    })?;
    Ok(row.into())
}

pub(super) async fn update(conn: &mut PgConnection, id: Uuid, patch: &KeyPatch) -> Result<Key> {
    let domains = patch.sender_domains.as_ref();
    let domain_texts = domains.and_then(|it| texts(it.as_deref(), |it| it.as_str().to_owned()));
    let addresses = patch.sender_addresses.as_ref();
    let address_texts =
        addresses.and_then(|it| texts(it.as_deref(), crate::address::EmailAddress::lookup_key));
    let row = sqlx::query_as!(
        Row,
        "update api_keys set
             name = coalesce($2, name),
             suppression_exempt = coalesce($3, suppression_exempt),
             sender_domains = case when $4 then $5 else sender_domains end,
             sender_addresses = case when $6 then $7 else sender_addresses end,
             networks = case when $8 then $9 else networks end,
             on_unknown = case when $10 then $11 else on_unknown end,
             expires_at = case when $12 then $13 else expires_at end,
             mode = coalesce($14, mode)
         where api_key_id = $1
         returning api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                   sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at",
        id,
        patch.name,
        patch.suppression_exempt,
        domains.is_some(),
        domain_texts.as_deref(),
        addresses.is_some(),
        address_texts.as_deref(),
        patch.networks.is_some(),
        patch.networks.as_ref().and_then(|it| it.as_deref()),
        patch.on_unknown.is_some(),
        patch.on_unknown.flatten().map(OnUnknown::as_str),
        patch.expires_at.is_some(),
        patch.expires_at.flatten(),
        patch.mode.map(KeyMode::as_str),
    )
    .fetch_one(conn)
    .await?;
    Ok(row.into())
}

pub(super) async fn revoke(conn: &mut PgConnection, id: Uuid) -> Result<Key> {
    let row = sqlx::query_as!(
        Row,
        "update api_keys set revoked_at = clock_timestamp() where api_key_id = $1
         returning api_key_id, name, prefix, key_hash, scopes, mode, suppression_exempt, sender_domains,
                   sender_addresses, networks, on_unknown, expires_at, last_used_at, revoked_at, created_at",
        id,
    )
    .fetch_one(conn)
    .await?;
    Ok(row.into())
}

fn texts<T>(list: Option<&[T]>, text: impl Fn(&T) -> String) -> Option<Vec<String>> {
    list.map(|list| list.iter().map(text).collect())
}

/// Writes a key that was made elsewhere; none if its prefix is taken.
pub(super) async fn adopt(conn: &mut PgConnection, key: &Adopted) -> Result<Option<Uuid>> {
    let scopes: Vec<String> = key.scopes.iter().map(|it| it.as_str().to_owned()).collect();
    let id = sqlx::query_scalar!(
        "insert into api_keys (api_key_id, name, prefix, key_hash, scopes, suppression_exempt, expires_at,
                               revoked_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, clock_timestamp()))
         on conflict on constraint api_keys_prefix_key do nothing
         returning api_key_id",
        Uuid::now_v7(),
        key.name,
        key.prefix,
        key.hash,
        &scopes,
        key.suppression_exempt,
        key.expires_at,
        key.revoked_at,
        key.created_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(id)
}
