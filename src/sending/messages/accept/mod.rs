//! Accepting: everything is parsed and composed before the database is asked; concurrent requests
//! share one commit (`write.rs`); the answer goes out after it, and nothing can fail any more then.

mod fresh;
mod item;
mod write;

use uuid::Uuid;

use super::{
    Mode, NewMessage,
    store::{self, read::Whole},
};
use crate::{
    accounts::access::Actor,
    address::Mailbox,
    error::{Error, Result, SuppressedRecipient},
    sending::{Sending, templates},
};

pub use item::{Idempotency, Item, NewRecipient};
pub use write::{accept_many, judged, write};

/// A message that is kept.
pub struct Taken {
    pub id: Uuid,
    /// It was accepted earlier, under the same idempotency key.
    pub replay: bool,
    /// As it was then, if it is of this request; one whose commit had no answer is not known so.
    pub fresh: Option<Box<Whole>>,
}

/// How a message was taken.
#[derive(Debug, Clone)]
pub enum Accepted {
    New(Option<Box<Whole>>),
    /// The key stands for this earlier message of the same request.
    Replay(Uuid),
    /// The key stands for another request.
    KeyReused,
    Suppressed(Vec<SuppressedRecipient>),
    /// It brought a Message-ID that an earlier message has.
    MessageIdUsed,
}

/// Accepts a message for whoever holds the key.
pub async fn accept(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    idempotency_key: Option<&str>,
) -> Result<Taken> {
    let earlier = |id| Taken { id, replay: true, fresh: None };
    let item = match prepare(sending, actor, message, idempotency_key).await {
        Ok(item) => item,
        // What was accepted once is not judged again: its template may have changed since.
        Err(error) => {
            let replay = replay(sending, actor, message, idempotency_key).await?;
            return replay.map(earlier).ok_or(error);
        }
    };
    let id = item.message_id;
    match sending.accepting.put(item).await? {
        Accepted::New(fresh) => {
            sending.app.queue.bell.ring();
            Ok(Taken { id, replay: false, fresh })
        }
        Accepted::Replay(id) => Ok(earlier(id)),
        Accepted::KeyReused => Err(key_reused()),
        Accepted::Suppressed(list) => Err(Error::Suppressed(list)),
        Accepted::MessageIdUsed => Err(Error::conflict(
            "MESSAGE_ID_USED",
            "another message has this Message-ID; it may be the same one. Leave the field out, and each gets its own",
        )),
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
        return Ok(Item { idempotency, ..item::item(sending, actor, message, &from, mode) });
    };
    let rendered = templates::filled(&sending.app.db, template).await?;
    let filled = message.filled(rendered);
    let code = "TEMPLATE_NOT_RENDERED";
    let filled = filled.map_err(|issues| Error::Invalid { code, issues })?;
    Ok(Item { idempotency, ..item::item(sending, actor, &filled, &from, mode) })
}

/// The message of an earlier request with this key, if there was one.
async fn replay(
    sending: &Sending,
    actor: &Actor,
    message: &NewMessage,
    idempotency_key: Option<&str>,
) -> Result<Option<Uuid>> {
    let Some(key) = idempotency_key else { return Ok(None) };
    let mine = Idempotency::of(actor, message, key);
    let mut conn = sending.app.db.acquire().await?;
    let known = store::accept::earlier(&mut conn, &[(mine.api_key_id, mine.key.clone())]).await?;
    match mine.earlier(&known) {
        Some(Accepted::Replay(id)) => Ok(Some(id)),
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
    let sender = message.raw.as_ref().and_then(|it| it.sender.as_ref());
    for it in [Some(&from), sender].into_iter().flatten() {
        if !actor.key.admits_sender(it.address()) {
            let why = format!("Forbidden: this key may not send from \"{}\"", it.address());
            return Err(Error::forbidden("SENDER_NOT_ALLOWED", why));
        }
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
