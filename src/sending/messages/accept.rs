//! Accepting: everything is parsed and composed before the database is asked; concurrent requests
//! share one commit; the answer goes out after it.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    KIND, Lifetime, Mode, NewMessage, OnUnknown, RecipientKind, TestAddress, compose, store,
};
use crate::{
    accounts::access::Actor,
    address::Mailbox,
    error::{Error, Result, SuppressedRecipient},
    events::{self, Event},
    metrics::Metrics,
    queue::{self, NewJob, Priority},
    sending::{Sending, templates},
};

/// One message, ready to be written.
#[derive(Debug, Clone)]
pub struct Item {
    pub message_id: Uuid,
    pub api_key_id: Uuid,
    pub internet_id: String,
    pub from_address: String,
    pub from_header: String,
    pub to_header: String,
    pub cc_header: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub bytes: Arc<Vec<u8>>,
    pub smtputf8: bool,
    pub has_attachment: bool,
    pub tags: Vec<String>,
    pub metadata: serde_json::Value,
    pub priority: Priority,
    pub send_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    /// The lifetime in seconds, where it was asked for as such.
    pub ttl: Option<i32>,
    pub on_unknown: Option<OnUnknown>,
    pub suppression_exempt: bool,
    pub reject_suppressed: bool,
    pub recipients: Vec<NewRecipient>,
    pub idempotency: Option<Idempotency>,
    pub mode: Mode,
    lane: String,
}

#[derive(Debug, Clone)]
pub struct NewRecipient {
    pub recipient_id: Uuid,
    pub field: &'static str,
    pub address: String,
    pub lookup_key: String,
    /// Why it is not sent to: filled in when the message is written.
    pub suppressed: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Idempotency {
    pub api_key_id: Uuid,
    pub key: String,
    pub request_hash: [u8; 32],
}

impl Idempotency {
    /// Of the message as it was asked for: before its template is filled.
    fn of(actor: &Actor, message: &NewMessage, key: &str) -> Self {
        let request_hash = message.fingerprint();
        Self { api_key_id: actor.key.id, key: key.to_owned(), request_hash }
    }

    /// What the key stands for, among these.
    fn earlier(&self, known: &[store::accept::Earlier]) -> Option<Accepted> {
        let mut known = known.iter();
        let found = known.find(|it| it.api_key_id == self.api_key_id && it.key == self.key)?;
        Some(match found.request_hash == self.request_hash {
            true => Accepted::Replay(found.message_id),
            false => Accepted::KeyReused,
        })
    }
}

impl Item {
    /// Recipients that are to be sent to.
    pub fn n_open(&self) -> usize {
        self.recipients.iter().filter(|it| it.suppressed.is_none()).count()
    }

    /// For the metrics: those who are suppressed already, and a message that has nobody else.
    pub(super) fn count(&self, metrics: &Metrics) {
        let suppressed = self.recipients.iter().filter(|it| it.suppressed.is_some());
        suppressed.for_each(|_| metrics.sending.recipient("suppressed"));
        if self.n_open() == 0 {
            metrics.sending.settled("suppressed", 0.0);
        }
    }
}

/// How a message was taken.
#[derive(Debug, Clone)]
pub enum Accepted {
    New,
    /// The key stands for this earlier message of the same request.
    Replay(Uuid),
    /// The key stands for another request.
    KeyReused,
    Suppressed(Vec<SuppressedRecipient>),
}

/// Accepts a message for whoever holds the key. Answers its id, and whether it is a replay.
pub async fn accept(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    idempotency_key: Option<&str>,
) -> Result<(Uuid, bool)> {
    let item = match prepare(sending, actor, message, idempotency_key).await {
        Ok(item) => item,
        // What was accepted once is not judged again: its template may have changed since.
        Err(error) => return replay(sending, actor, message, idempotency_key).await?.ok_or(error),
    };
    let id = item.message_id;
    match sending.accepting.put(item).await? {
        Accepted::New => {
            sending.app.queue.bell.ring();
            Ok((id, false))
        }
        Accepted::Replay(earlier) => Ok((earlier, true)),
        Accepted::KeyReused => Err(key_reused()),
        Accepted::Suppressed(list) => Err(Error::Suppressed(list)),
    }
}

pub(super) fn key_reused() -> Error {
    let why = "this idempotency key was used for another request";
    Error::conflict("IDEMPOTENCY_KEY_REUSED", why)
}

/// Everything that is judged and made before the message is written.
pub(super) async fn prepare(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    idempotency_key: Option<&str>,
) -> Result<Item> {
    let keys: Vec<String> = message.recipients().map(|(_, it)| it.address().lookup_key()).collect();
    let mode = Mode::of(&actor.key, keys.iter().map(String::as_str));
    let from = sender(sending, actor, message, mode)?;
    let idempotency = idempotency_key.map(|key| Idempotency::of(actor, message, key));
    let Some(template) = &message.template else {
        return Ok(Item { idempotency, ..item(sending, actor, message, &from, mode) });
    };
    let rendered = templates::filled(&sending.app.db, template).await?;
    let filled = message.filled(rendered);
    let code = "TEMPLATE_NOT_RENDERED";
    let filled = filled.map_err(|issues| Error::Invalid { code, issues })?;
    Ok(Item { idempotency, ..item(sending, actor, &filled, &from, mode) })
}

/// What an earlier request with this key was answered, if there was one.
async fn replay(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    idempotency_key: Option<&str>,
) -> Result<Option<(Uuid, bool)>> {
    let Some(key) = idempotency_key else { return Ok(None) };
    let mine = Idempotency::of(actor, message, key);
    let mut conn = sending.app.db.acquire().await?;
    let known = store::accept::earlier(&mut conn, &[(mine.api_key_id, mine.key.clone())]).await?;
    match mine.earlier(&known) {
        Some(Accepted::Replay(id)) => Ok(Some((id, true))),
        Some(_) => Err(key_reused()),
        None => Ok(None),
    }
}

/// The sender of the message: as asked for, or the first relay's. The key must permit it, and some
/// relay must be eligible for it where one is needed.
fn sender(sending: &Sending, actor: &Actor, message: &NewMessage, mode: Mode) -> Result<Mailbox> {
    let from = match &message.from {
        Some(from) => from.clone(),
        None => {
            sending.relays.default_sender(|address| actor.key.admits_sender(address)).ok_or_else(
                || Error::invalid("from", "no relay gives a sender that this key may use: say one"),
            )?
        }
    };
    if !actor.key.admits_sender(from.address()) {
        return Err(Error::forbidden(
            "SENDER_NOT_ALLOWED",
            format!("Forbidden: this key may not send from \"{}\"", from.address()),
        ));
    }
    if mode == Mode::Live && sending.relays.eligible(from.address(), 0).is_empty() {
        return Err(Error::Invalid {
            code: "FROM_NOT_ALLOWED",
            issues: vec![crate::error::Issue::new(
                "from",
                format!("From address \"{}\" is not allowed", from.address()),
            )],
        });
    }
    Ok(from)
}

fn item(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    from: &Mailbox,
    mode: Mode,
) -> Item {
    let message_id = Uuid::now_v7();
    let internet_id = format!("{message_id}@{}", from.address().domain());
    let now = sending.app.now();
    let date = message.send_at.map_or(now, |at| at.max(now));
    let composed = compose(message, from, &internet_id, date);
    let header =
        |list: &[Mailbox]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let recipients = message
        .recipients()
        .map(|(kind, mailbox)| NewRecipient {
            recipient_id: Uuid::now_v7(),
            field: match kind {
                RecipientKind::To => "to",
                RecipientKind::Cc => "cc",
                RecipientKind::Bcc => "bcc",
            },
            address: mailbox.address().to_string(),
            lookup_key: mailbox.address().lookup_key(),
            suppressed: None,
        })
        .collect();
    Item {
        message_id,
        api_key_id: actor.key.id,
        internet_id,
        from_address: from.address().to_string(),
        from_header: from.to_string(),
        to_header: header(&message.to),
        cc_header: header(&message.cc),
        reply_to: (!message.reply_to.is_empty()).then(|| header(&message.reply_to)),
        subject: message.subject.clone(),
        bytes: Arc::new(composed.bytes),
        smtputf8: composed.smtputf8,
        has_attachment: !message.attachments.is_empty(),
        tags: message.tags.iter().cloned().collect(),
        metadata: serde_json::json!(message.metadata),
        priority: match message.priority {
            super::Priority::High => Priority::High,
            super::Priority::Normal => Priority::Normal,
            super::Priority::Bulk => Priority::Bulk,
        },
        send_at: message.send_at,
        expires_at: message.expires_at,
        ttl: message.lifetime.and_then(|it| match it {
            Lifetime::Seconds(n) => i32::try_from(n).ok(),
            Lifetime::Until(_) => None,
        }),
        on_unknown: message.on_unknown,
        suppression_exempt: actor.key.suppression_exempt,
        reject_suppressed: message.reject_suppressed.unwrap_or(true),
        recipients,
        idempotency: None,
        mode,
        lane: mode.lane(from.address().domain().as_str()),
    }
}

/// Writes messages together, in one transaction. An item whose own commit had no answer finds
/// itself written, and is not written again.
pub async fn accept_many(db: &PgPool, metrics: &Metrics, items: &[Item]) -> Result<Vec<Accepted>> {
    let mut tx = db.begin().await?;
    let ids: Vec<Uuid> = items.iter().map(|it| it.message_id).collect();
    let written = store::accept::written(&mut tx, &ids).await?;
    let asked: Vec<&Item> = items.iter().filter(|it| !written.contains(&it.message_id)).collect();
    let mut answers: HashMap<Uuid, Accepted> =
        written.into_iter().map(|id| (id, Accepted::New)).collect();

    let suppressed: HashMap<String, String> = {
        let keys: Vec<String> = asked
            .iter()
            .filter(|it| !it.suppression_exempt)
            .flat_map(|it| it.recipients.iter().map(|to| to.lookup_key.clone()))
            .collect();
        store::accept::suppressed(&mut tx, &keys).await?.into_iter().collect()
    };
    let replays = store::accept::earlier(&mut tx, &keys_of(&asked)).await?;
    let mut ready: Vec<Item> = Vec::new();
    for item in asked {
        match earlier(item, &replays) {
            Some(answer) => _ = answers.insert(item.message_id, answer),
            None => match judged(item.clone(), &suppressed) {
                Ok(item) => ready.push(item),
                Err(list) => _ = answers.insert(item.message_id, Accepted::Suppressed(list)),
            },
        }
    }
    let refs: Vec<&Item> = ready.iter().collect();
    let won = store::accept::claim_keys(&mut tx, &refs).await?;
    let (ready, lost): (Vec<&Item>, Vec<&Item>) =
        refs.into_iter().partition(|it| it.idempotency.is_none() || won.contains(&it.message_id));
    // Somebody else's commit came first: what is said now is what it said.
    let replays = store::accept::earlier(&mut tx, &keys_of(&lost)).await?;
    for item in lost {
        answers.insert(item.message_id, earlier(item, &replays).unwrap_or(Accepted::KeyReused));
    }
    write(&mut tx, &ready).await?;
    tx.commit().await?;
    ready.iter().for_each(|it| it.count(metrics));
    answers.extend(ready.iter().map(|it| (it.message_id, Accepted::New)));
    let new = answers.values().filter(|it| matches!(it, Accepted::New));
    new.for_each(|_| metrics.sending.accepted());
    Ok(items.iter().filter_map(|it| answers.remove(&it.message_id)).collect())
}

/// Writes messages that nothing speaks against.
pub(super) async fn write(conn: &mut sqlx::PgConnection, ready: &[&Item]) -> Result<()> {
    if ready.is_empty() {
        return Ok(());
    }
    store::accept::insert(conn, ready).await?;
    let jobs: Vec<NewJob<'_>> = ready
        .iter()
        .filter(|it| it.n_open() > 0)
        .map(|it| NewJob {
            job_id: it.message_id,
            lane: &it.lane,
            priority: it.priority,
            due: it.send_at,
        })
        .collect();
    queue::enqueue(conn, KIND, &jobs).await?;
    let told: Vec<Event> = ready.iter().flat_map(|it| told(it)).collect();
    events::emit(conn, &told).await
}

fn told(item: &Item) -> Vec<Event> {
    let event = |kind, data| Event { kind, subject: "message", subject_id: item.message_id, data };
    let accepted = serde_json::json!({
        "messageId": item.internet_id, "recipients": item.recipients.len(), "tags": item.tags,
    });
    let mut told = vec![event("message.accepted", accepted)];
    for it in &item.recipients {
        if let Some(reason) = &it.suppressed {
            let data = serde_json::json!({ "address": it.address, "reason": "suppressed", "text": reason });
            told.push(event("recipient.suppressed", data));
        }
    }
    if item.n_open() == 0 {
        let data = serde_json::json!({ "outcome": "suppressed", "messageId": item.internet_id, "accepted": 0 });
        told.push(event("send.failed", data));
    }
    told
}

fn keys_of(items: &[&Item]) -> Vec<(Uuid, String)> {
    items
        .iter()
        .filter_map(|it| it.idempotency.as_ref())
        .map(|it| (it.api_key_id, it.key.clone()))
        .collect()
}

fn earlier(item: &Item, known: &[store::accept::Earlier]) -> Option<Accepted> {
    item.idempotency.as_ref()?.earlier(known)
}

/// The item with its suppressed recipients marked; or the list of them, if that refuses it.
pub(super) fn judged(
    mut item: Item,
    suppressed: &HashMap<String, String>,
) -> std::result::Result<Item, Vec<SuppressedRecipient>> {
    if item.suppression_exempt {
        return Ok(item);
    }
    let mut found = Vec::new();
    for it in &mut item.recipients {
        let listed = suppressed.get(&it.lookup_key).cloned();
        it.suppressed = listed.or_else(|| TestAddress::suppressed(&it.lookup_key));
        if let Some(reason) = &it.suppressed {
            found.push(SuppressedRecipient { address: it.address.clone(), reason: reason.clone() });
        }
    }
    if item.reject_suppressed && !found.is_empty() { Err(found) } else { Ok(item) }
}
