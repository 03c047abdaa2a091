//! Pauses: what an operator has stopped. Everything, a relay, the mail of a sender's domain, or the
//! mail to a recipient's domain; each holds its own only. What is paused is accepted and waits;
//! a conversation under way is not cut off. Waiting counts towards a message's own time and the
//! retry window: a pause is no means to keep mail for ever.

mod routes;
mod store;

use std::{
    collections::HashSet,
    sync::{Arc, RwLock},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Sending;
use crate::{
    address::DomainName,
    app::App,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
};

pub use routes::router;

/// What is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PauseScope)]
pub enum Scope {
    All,
    /// A relay; its value is the relay's id. Others go on in its place.
    Relay,
    SenderDomain,
    RecipientDomain,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Relay => "relay",
            Self::SenderDomain => "sender_domain",
            Self::RecipientDomain => "recipient_domain",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::All, Self::Relay, Self::SenderDomain, Self::RecipientDomain]
            .into_iter()
            .find(|it| it.as_str() == text)
    }
}

/// A pause to be made. Unknown fields are refused.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPause {
    pub scope: Scope,
    /// A relay's id, or a domain; not with `all`.
    #[serde(default)]
    pub value: String,
    /// Why, for the next one who looks; at most 500 characters.
    pub reason: Option<String>,
}

/// A pause.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    pub id: Uuid,
    pub scope: Scope,
    /// Empty for `all`.
    pub value: String,
    pub reason: Option<String>,
    pub paused_at: DateTime<Utc>,
    /// Who paused it.
    pub paused_by: String,
}

/// The pauses as this process knows them.
#[derive(Default)]
pub struct Pauses(RwLock<Arc<HashSet<(Scope, String)>>>);

impl Pauses {
    /// Reads them. Answers whether they are others now.
    pub async fn read(&self, db: &PgPool) -> Result<bool> {
        let pauses: HashSet<_> =
            store::all(db).await?.into_iter().map(|it| (it.scope, it.value)).collect();
        let mut known = self.0.write().expect("no writer panics");
        let changed = **known != pauses;
        *known = Arc::new(pauses);
        Ok(changed)
    }

    pub fn holds(&self, scope: Scope, value: &str) -> bool {
        let pauses = self.0.read().expect("no writer panics").clone();
        !pauses.is_empty() && pauses.contains(&(scope, value.to_owned()))
    }

    /// Whether nothing of this sender's domain may begin.
    pub fn holds_sender(&self, domain: &str) -> bool {
        self.holds(Scope::All, "") || self.holds(Scope::SenderDomain, domain)
    }
}

pub async fn list(app: &App) -> Result<Vec<Pause>> {
    store::all(&app.db).await
}

/// Pauses a scope. One that is paused already stays as it is.
pub async fn create(sending: &Sending, who: &Who, new: NewPause) -> Result<Pause> {
    let value = value(new.scope, &new.value)?;
    if new.reason.as_deref().is_some_and(|it| it.encode_utf16().count() > 500 || it.contains('\0'))
    {
        return Err(Error::invalid("reason", "at most 500 characters without NUL"));
    }
    let mut tx = sending.app.db.begin().await?;
    if let (Scope::Relay, Ok(id)) = (new.scope, value.parse())
        && !super::relays::exists(&mut tx, id).await?
    {
        return Err(Error::NotFound("SMTP account"));
    }
    let made = store::insert(&mut tx, new.scope, &value, new.reason.as_deref(), &who.name).await?;
    if let Some(pause) = &made {
        written(&mut tx, who, "sending.paused", None, Some(pause)).await?;
    }
    let pause = store::one(&mut tx, new.scope, &value).await?.ok_or(Error::NotFound("Pause"))?;
    tx.commit().await?;
    sending.refresh().await;
    Ok(pause)
}

/// Resumes; what waited goes out.
pub async fn delete(sending: &Sending, who: &Who, id: Uuid) -> Result<()> {
    let mut tx = sending.app.db.begin().await?;
    let pause = store::delete(&mut tx, id).await?.ok_or(Error::NotFound("Pause"))?;
    written(&mut tx, who, "sending.resumed", Some(&pause), None).await?;
    tx.commit().await?;
    sending.refresh().await;
    Ok(())
}

/// The value as it is compared: nothing, a relay's id, or a domain in A-labels.
fn value(scope: Scope, text: &str) -> Result<String> {
    match scope {
        Scope::All if text.is_empty() => Ok(String::new()),
        Scope::All => Err(Error::invalid("value", "all has no value")),
        Scope::Relay => {
            let id: Uuid = text.parse().map_err(|_| Error::invalid("value", "a relay's id"))?;
            Ok(id.to_string())
        }
        Scope::SenderDomain | Scope::RecipientDomain => {
            let domain: DomainName =
                text.parse().map_err(|_| Error::invalid("value", "a domain"))?;
            Ok(domain.as_str().to_owned())
        }
    }
}

async fn written(
    conn: &mut sqlx::PgConnection,
    who: &Who,
    action: &'static str,
    before: Option<&Pause>,
    after: Option<&Pause>,
) -> Result<()> {
    let Some(pause) = after.or(before) else { return Ok(()) };
    audit::record(conn, who, action, ("pause", pause.id), before, after).await?;
    let data =
        serde_json::json!({ "scope": pause.scope, "value": pause.value, "reason": pause.reason });
    events::emit(conn, &[Event { kind: action, subject: "pause", subject_id: pause.id, data }])
        .await?;
    store::notify(conn).await
}
