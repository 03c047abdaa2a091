//! Limits: at most so many recipients a minute, an hour or a day, for a key, a sender's domain or a
//! recipient's domain. A relay's `maxPerMinute` is kept in the same way.
//!
//! What is over a limit is not refused: it is accepted, waits, and goes out by itself. Counted is
//! what a relay accepted, or may have: what it refused is given back.
//!
//! No stretch of that time, wherever it begins, holds more than the limit, over all processes:
//! `window.rs` is the sum, `store.rs` keeps it in the database, by the database's clock, and
//! `purse.rs` is what this process has taken of it.

mod purse;
mod routes;
mod store;
mod window;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Sending;
use crate::{
    accounts::api_keys,
    address::DomainName,
    app::App,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
};

pub use purse::{Kept, Purse, Spending};
pub use routes::{router, tell};

/// Whom a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LimitScope)]
pub enum Scope {
    /// An API key; its value is the key's id.
    Key,
    SenderDomain,
    RecipientDomain,
    /// A relay, by its own `maxPerMinute`.
    #[serde(skip)]
    Relay,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::SenderDomain => "sender_domain",
            Self::RecipientDomain => "recipient_domain",
            Self::Relay => "relay",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Key, Self::SenderDomain, Self::RecipientDomain]
            .into_iter()
            .find(|it| it.as_str() == text)
    }
}

/// The time in which a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    Minute,
    Hour,
    Day,
}

impl Per {
    const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    pub fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
        }
    }

    fn width(self) -> f64 {
        window::width(self.seconds())
    }
}

/// What is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    pub scope: Scope,
    pub value: String,
    pub per: Per,
}

impl Bucket {
    /// A relay's messages of a minute.
    pub fn of_relay(id: Uuid) -> Self {
        Self { scope: Scope::Relay, value: id.to_string(), per: Per::Minute }
    }
}

/// A limit to be set. Unknown fields are refused.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLimit {
    pub scope: Scope,
    /// A key's id, or a domain.
    pub value: String,
    pub per: Per,
    /// 1 to 100000000 recipients.
    #[schema(minimum = 1, maximum = 100_000_000)]
    pub most: i32,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Limit {
    pub id: Uuid,
    pub scope: Scope,
    /// A key's id, or a domain.
    pub value: String,
    pub per: Per,
    pub most: i32,
}

impl Limit {
    pub fn bucket(&self) -> Bucket {
        Bucket { scope: self.scope, value: self.value.clone(), per: self.per }
    }
}

/// A limit, and how it stands.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LimitStanding)]
pub struct Standing {
    #[serde(flatten)]
    pub limit: Limit,
    /// So many more go out at once; what comes after them waits.
    pub left: i32,
    /// Seconds until more is left; 0 while something is.
    pub reset: u64,
}

/// All limits, as they stand.
pub async fn list(app: &App) -> Result<Vec<Standing>> {
    standings(app, store::all(&app.db).await?).await
}

/// The limits of one key, as they stand.
pub async fn of_key(app: &App, purse: &Purse, key: Uuid) -> Result<Vec<Standing>> {
    standings(app, purse.of(Scope::Key, &key.to_string())).await
}

async fn standings(app: &App, limits: Vec<Limit>) -> Result<Vec<Standing>> {
    let mut standings = Vec::with_capacity(limits.len());
    for limit in limits {
        let left = store::left(&app.db, &limit.bucket(), limit.most).await?;
        let reset = if left.left > 0 { 0 } else { left.free_in.ceil() as u64 };
        standings.push(Standing { limit, left: left.left, reset });
    }
    Ok(standings)
}

/// Sets a limit. It holds at once; what waits for it is looked at again.
pub async fn put(sending: &Sending, who: &Who, new: NewLimit) -> Result<Limit> {
    let NewLimit { scope, per, most, .. } = new;
    let value = value(scope, &new.value)?;
    if !(1..=100_000_000).contains(&most) {
        return Err(Error::invalid("most", "from 1 to 100000000"));
    }
    let mut tx = sending.app.db.begin().await?;
    if let (Scope::Key, Ok(id)) = (scope, value.parse())
        && !api_keys::exists(&mut tx, id).await?
    {
        return Err(Error::NotFound("API key"));
    }
    let before = store::lock(&mut tx, scope, &value, per).await?.and_then(store::Row::limit);
    let row = store::put(&mut tx, scope, &value, per, most).await?;
    let limit = Limit { id: row.limit_id, scope, value, per, most };
    written(&mut tx, who, "limit.set", before.as_ref(), Some(&limit)).await?;
    tx.commit().await?;
    sending.refresh().await;
    Ok(limit)
}

/// Takes a limit away.
pub async fn delete(sending: &Sending, who: &Who, id: Uuid) -> Result<()> {
    let mut tx = sending.app.db.begin().await?;
    let row = store::delete(&mut tx, id).await?.ok_or(Error::NotFound("Limit"))?;
    written(&mut tx, who, "limit.removed", row.limit().as_ref(), None).await?;
    tx.commit().await?;
    sending.refresh().await;
    Ok(())
}

/// Why somebody waits, for people.
pub fn words((bucket, most): &Kept) -> String {
    let per = bucket.per.as_str();
    match bucket.scope {
        Scope::Key => format!("the key's limit of {most} in a {per} is used up"),
        Scope::SenderDomain => {
            format!("the limit of {most} in a {per} from {} is used up", bucket.value)
        }
        Scope::RecipientDomain => {
            format!("the limit of {most} in a {per} to {} is used up", bucket.value)
        }
        Scope::Relay => format!("the relay's limit of {most} in a {per} is used up"),
    }
}

/// Forgets what was spent long ago.
pub async fn forget(app: &App) -> Result<()> {
    store::forget(&app.workers_db).await
}

/// The value as it is compared: a key's id, or a domain in A-labels.
fn value(scope: Scope, text: &str) -> Result<String> {
    if scope == Scope::Key {
        let id: Uuid = text.parse().map_err(|_| Error::invalid("value", "a key's id"))?;
        return Ok(id.to_string());
    }
    let domain: DomainName = text.parse().map_err(|_| Error::invalid("value", "a domain"))?;
    Ok(domain.as_str().to_owned())
}

async fn written(
    conn: &mut sqlx::PgConnection,
    who: &Who,
    action: &'static str,
    before: Option<&Limit>,
    after: Option<&Limit>,
) -> Result<()> {
    let Some(limit) = after.or(before) else { return Ok(()) };
    audit::record(conn, who, action, ("limit", limit.id), before, after).await?;
    let data = serde_json::json!(limit);
    events::emit(conn, &[Event { kind: action, subject: "limit", subject_id: limit.id, data }])
        .await?;
    store::notify(conn).await
}
