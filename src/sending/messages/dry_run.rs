//! `POST /send?dryRun`: what a request would come to. Judged as for a real one, and nothing is kept.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    Mode, NewMessage, TestAddress,
    accept::{self, Item, NewRecipient},
    store,
};
use crate::{accounts::access::Actor, address::EmailAddress, error::Result, sending::Sending};

/// What would be sent, to whom, and through what. The Message-ID and the date are examples.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// Always true: nothing was kept, and nothing will be sent.
    pub dry_run: bool,
    /// With its angle brackets.
    pub message_id: String,
    pub envelope: PlannedEnvelope,
    pub recipients: Vec<PlannedRecipient>,
    /// The relays that may be asked, the first to be asked first. Of equals each takes its turn. None
    /// where nobody is sent to by relay.
    pub relays: Vec<PlannedRelay>,
    /// In bytes.
    pub size: usize,
    /// Whether only a relay with SMTPUTF8 can carry it, because of its header.
    pub smtputf8: bool,
    /// The exact bytes, in base64.
    pub raw: String,
    /// The fields of the request that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// What the relay would be told.
#[derive(Debug, Serialize, ToSchema)]
pub struct PlannedEnvelope {
    pub sender: String,
    /// Those that would be sent to, Bcc too.
    pub recipients: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PlannedRecipient {
    pub address: String,
    /// `to`, `cc` or `bcc`.
    pub field: &'static str,
    /// `queued`, or `suppressed` for the reason given.
    pub state: &'static str,
    pub reason: Option<String>,
    /// Who would carry it: `relay`, `test` for a test address, `capture` for a key that captures;
    /// nobody if it is suppressed.
    pub by: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PlannedRelay {
    pub id: Uuid,
    pub name: String,
}

/// Judges the message as [`accept::accept`] would, except for its idempotency key.
pub async fn dry_run(sending: &Sending, actor: &Actor, message: &NewMessage) -> Result<DryRun> {
    let item = accept::prepare(sending, actor, message, None).await?;
    let keys: Vec<String> = item.recipients.iter().map(|it| it.lookup_key.clone()).collect();
    let mut conn = sending.app.db.acquire().await?;
    let suppressed = store::accept::suppressed(&mut conn, &keys).await?.into_iter().collect();
    drop(conn);
    let item = accept::judged(item, &suppressed).map_err(crate::error::Error::Suppressed)?;
    let ignored = message.ignored.clone();
    Ok(DryRun { ignored, relays: relays(sending, &item), ..DryRun::of(&item) })
}

fn relays(sending: &Sending, item: &Item) -> Vec<PlannedRelay> {
    if item.mode != Mode::Live {
        return Vec::new();
    }
    let Ok(sender) = item.from_address.parse::<EmailAddress>() else { return Vec::new() };
    let relays = sending.relays.eligible(&sender, 0);
    relays.iter().map(|it| PlannedRelay { id: it.id, name: it.name.clone() }).collect()
}

impl DryRun {
    fn of(item: &Item) -> Self {
        let asked = item.recipients.iter().filter(|it| it.suppressed.is_none());
        Self {
            dry_run: true,
            message_id: format!("<{}>", item.internet_id),
            envelope: PlannedEnvelope {
                sender: item.from_address.clone(),
                recipients: asked.map(|it| it.address.clone()).collect(),
            },
            recipients: item.recipients.iter().map(|it| it.planned(item.mode)).collect(),
            relays: Vec::new(),
            size: item.bytes.len(),
            smtputf8: item.smtputf8,
            raw: STANDARD.encode(&*item.bytes),
            ignored: Vec::new(),
        }
    }
}

impl NewRecipient {
    fn planned(&self, mode: Mode) -> PlannedRecipient {
        let by = match (TestAddress::of(&self.lookup_key), mode) {
            (Some(_), _) => "test",
            (None, Mode::Capture) => "capture",
            (None, Mode::Live | Mode::Test) => "relay",
        };
        PlannedRecipient {
            address: self.address.clone(),
            field: self.field,
            state: if self.suppressed.is_some() { "suppressed" } else { "queued" },
            reason: self.suppressed.clone(),
            by: self.suppressed.is_none().then_some(by),
        }
    }
}
