//! One message, ready to be written.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Accepted, store};
use crate::{
    accounts::access::Actor,
    address::Mailbox,
    metrics::Metrics,
    queue::Priority,
    sending::{
        Sending,
        messages::{self, Lifetime, Mode, NewMessage, OnUnknown, RecipientKind, compose},
    },
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
    pub eight_bit: bool,
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
    pub(super) lane: String,
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
    pub(super) fn of(actor: &Actor, message: &NewMessage, key: &str) -> Self {
        let request_hash = message.fingerprint();
        Self { api_key_id: actor.key.id, key: key.to_owned(), request_hash }
    }

    /// What the key stands for, among these.
    pub(super) fn earlier(&self, known: &[store::accept::Earlier]) -> Option<Accepted> {
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
    pub fn count(&self, metrics: &Metrics) {
        let suppressed = self.recipients.iter().filter(|it| it.suppressed.is_some());
        suppressed.for_each(|_| metrics.sending.recipient("suppressed"));
        if self.n_open() == 0 {
            metrics.sending.settled("suppressed", 0.0);
        }
    }
}

/// Makes it of what is asked for, composed.
pub(super) fn item(
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
    let internet_id = message.message_id().unwrap_or(internet_id);
    let composed = compose(message, from, &internet_id, date);
    let (to, cc) = message.shown();
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
        to_header: header(to),
        cc_header: header(cc),
        reply_to: (!message.reply_to.is_empty()).then(|| header(&message.reply_to)),
        subject: message.subject.clone(),
        bytes: Arc::new(composed.bytes),
        smtputf8: composed.smtputf8,
        eight_bit: composed.eight_bit,
        has_attachment: message.has_attachment(),
        tags: message.tags.iter().cloned().collect(),
        metadata: serde_json::json!(message.metadata),
        priority: match message.priority {
            messages::Priority::High => Priority::High,
            messages::Priority::Normal => Priority::Normal,
            messages::Priority::Bulk => Priority::Bulk,
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
