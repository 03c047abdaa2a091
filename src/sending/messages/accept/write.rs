//! Writes messages, however many, in one transaction.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use super::{Accepted, Item, fresh::fresh, store};
use crate::{
    error::{Result, SuppressedRecipient},
    events::{self, Event},
    metrics::Metrics,
    queue::{self, NewJob},
    sending::messages::{KIND, TestAddress},
};

/// Writes messages together, in one transaction. An item whose own commit had no answer finds
/// itself written, and is not written again.
pub async fn accept_many(db: &PgPool, metrics: &Metrics, items: &[Item]) -> Result<Vec<Accepted>> {
    let mut tx = db.begin().await?;
    let ids: Vec<Uuid> = items.iter().map(|it| it.message_id).collect();
    let written = store::accept::written(&mut tx, &ids).await?;
    let asked: Vec<&Item> = items.iter().filter(|it| !written.contains(&it.message_id)).collect();
    let mut answers: HashMap<Uuid, Accepted> =
        written.into_iter().map(|id| (id, Accepted::New(None))).collect();

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
    let times = write(&mut tx, &ready).await?;
    tx.commit().await?;
    let kept = ready.iter().filter(|it| times.contains_key(&it.message_id));
    kept.for_each(|it| it.count(metrics));
    answers.extend(ready.iter().map(|it| {
        let answer = match times.get(&it.message_id) {
            Some(at) => Accepted::New(Some(Box::new(fresh(it, *at)))),
            None => Accepted::MessageIdUsed,
        };
        (it.message_id, answer)
    }));
    let new = answers.values().filter(|it| matches!(it, Accepted::New(_)));
    new.for_each(|_| metrics.sending.accepted());
    Ok(items.iter().filter_map(|it| answers.remove(&it.message_id)).collect())
}

/// Writes messages that nothing speaks against. Answers when each was accepted; one that is missing
/// there was not, for another message has its Message-ID.
pub async fn write(
    conn: &mut sqlx::PgConnection,
    ready: &[&Item],
) -> Result<HashMap<Uuid, DateTime<Utc>>> {
    if ready.is_empty() {
        return Ok(HashMap::new());
    }
    let times = store::accept::insert(conn, ready).await?;
    let ready = || ready.iter().filter(|it| times.contains_key(&it.message_id));
    let jobs: Vec<NewJob<'_>> = ready()
        .filter(|it| it.n_open() > 0)
        .map(|it| NewJob {
            job_id: it.message_id,
            lane: &it.lane,
            priority: it.priority,
            due: it.send_at,
        })
        .collect();
    queue::enqueue(conn, KIND, &jobs).await?;
    let told: Vec<Event> = ready().flat_map(|it| told(it)).collect();
    events::emit(conn, &told).await?;
    Ok(times)
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
pub fn judged(
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
