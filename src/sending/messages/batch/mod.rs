//! `POST /send/batch`: many messages in one transaction, each judged for itself.
//!
//! What is wrong with one message refuses that message only; its answer says so in its place. The
//! idempotency key stands for the batch as a whole: its hash is over all that was asked, and its
//! answer is kept with it, so that a replay says the same. A crash leaves all of it, or nothing.

mod answer;
mod routes;

use std::collections::HashMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use self::answer::{BatchAnswer, ItemAnswer};
use super::{
    SendRequest,
    accept::{self, Item},
    store::{self, batch::Claimed},
};
use crate::{
    accounts::access::Actor,
    error::{Error, Result},
    sending::Sending,
};

pub use routes::router;

/// So many messages at most.
pub const MOST: usize = 500;

/// Messages are written in statements of at most so many, and about so many bytes.
const CHUNK: (usize, usize) = (100, 16 * 1024 * 1024);

/// How a batch was answered.
pub enum Answered {
    Now(BatchAnswer),
    /// The key stands for this earlier answer to the same batch.
    Replay(Value),
}

/// Takes what can be taken of a batch, all of it in one transaction.
pub async fn send(
    sending: &Sending,
    actor: &Actor,
    requests: Vec<Value>,
    attachments: usize,
    key: Option<&str>,
) -> Result<Answered> {
    let mut hash = Sha256::new();
    hash.update(b"postroom batch 1");
    let mut answers: Vec<ItemAnswer> = Vec::new();
    let mut items: HashMap<usize, Item> = HashMap::new();
    for (at, request) in requests.into_iter().enumerate() {
        let (item, ignored) = judge(sending, actor, request, attachments, &mut hash).await;
        match item {
            Ok(item) => {
                answers.push(ItemAnswer::accepted(&item, ignored));
                items.insert(at, item);
            }
            // Not the message's fault: the whole may be asked again.
            Err(error @ (Error::Unavailable { .. } | Error::Database(_))) => return Err(error),
            Err(error) => answers.push(ItemAnswer::refused(error)),
        }
    }
    let hash: [u8; 32] = hash.finalize().into();
    write(sending, actor, answers, items, key.map(|key| (key, hash))).await
}

/// One message of a batch: as for a single one, except that a suppressed recipient is left out where
/// the request does not say otherwise.
async fn judge(
    sending: &Sending,
    actor: &Actor,
    request: Value,
    attachments: usize,
    hash: &mut Sha256,
) -> (Result<Item>, Vec<String>) {
    let as_it_came = request.to_string();
    let parsed = serde_json::from_value::<SendRequest>(request)
        .map_err(|error| Error::invalid("", error.to_string()))
        .and_then(|it| it.parse(sending.app.now(), attachments).map_err(Error::issues));
    match parsed {
        Ok(mut message) => {
            hash.update(b"message");
            hash.update(message.fingerprint());
            message.reject_suppressed.get_or_insert(false);
            let ignored = std::mem::take(&mut message.ignored);
            (accept::prepare(sending, actor, &message, None).await, ignored)
        }
        Err(error) => {
            hash.update(b"refused");
            hash.update(Sha256::digest(as_it_came));
            (Err(error), Vec::new())
        }
    }
}

async fn write(
    sending: &Sending,
    actor: &Actor,
    mut answers: Vec<ItemAnswer>,
    mut items: HashMap<usize, Item>,
    key: Option<(&str, [u8; 32])>,
) -> Result<Answered> {
    let mut tx = sending.app.db.begin().await?;
    if let Some((key, hash)) = key {
        match store::batch::claim_key(&mut tx, actor.key.id, key, &hash, Uuid::now_v7()).await? {
            Claimed::Ours => (),
            Claimed::Replay(answer) => return Ok(Answered::Replay(answer)),
            Claimed::Other => return Err(accept::key_reused()),
        }
    }
    let keys: Vec<String> = items
        .values()
        .flat_map(|it| it.recipients.iter().map(|to| to.lookup_key.clone()))
        .collect();
    let suppressed = store::accept::suppressed(&mut tx, &keys).await?.into_iter().collect();
    let mut ready: Vec<Item> = Vec::new();
    for (at, answer) in answers.iter_mut().enumerate() {
        let Some(item) = items.remove(&at) else { continue };
        match accept::judged(item, &suppressed) {
            Ok(item) => ready.push(item),
            Err(list) => *answer = ItemAnswer::refused(Error::Suppressed(list)),
        }
    }
    for some in chunks(&ready) {
        accept::write(&mut tx, &some).await?;
    }
    let answer = BatchAnswer::of(answers);
    if !ready.is_empty() {
        if let Some((key, _)) = key {
            store::batch::keep_answer(&mut tx, actor.key.id, key, &answer).await?;
        }
        tx.commit().await?;
        ready.iter().for_each(|it| it.count(&sending.app.metrics));
        ready.iter().for_each(|_| sending.app.metrics.sending.accepted());
        sending.app.queue.bell.ring();
    }
    Ok(Answered::Now(answer))
}

/// As many in one statement as it can well hold.
fn chunks(items: &[Item]) -> Vec<Vec<&Item>> {
    let mut chunks: Vec<Vec<&Item>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        bytes += item.bytes.len();
        match chunks.last_mut() {
            Some(last) if last.len() < CHUNK.0 && bytes <= CHUNK.1 => last.push(item),
            _ => {
                bytes = item.bytes.len();
                chunks.push(vec![item]);
            }
        }
    }
    chunks
}
