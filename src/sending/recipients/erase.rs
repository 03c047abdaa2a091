//! Erasing: in transactions of some messages each, so that a break leaves nothing half done, and
//! whoever asks again goes on.

use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    spellings,
    view::{Erased, Erasure},
};
use crate::{
    address::EmailAddress,
    app::App,
    audit::{self, Who},
    error::Result,
    events::{self, Event},
    sending::{messages::addressed, sandbox, suppressions},
};

/// Erases what is kept of an address.
pub async fn erase(
    app: &App,
    who: &Who,
    address: &EmailAddress,
    asked: &Erasure,
) -> Result<Erased> {
    let key = address.lookup_key();
    let (id, alias) = alias(&addressed::salt(&app.db).await?, &key);
    let spellings = spellings(&mut *app.db.acquire().await?, address).await?;
    let mut all =
        Erased { alias, messages: 0, open: 0, events: 0, sandbox_messages: 0, suppression: false };
    let mut last = None;
    loop {
        let mut tx = app.db.begin().await?;
        let batch = addressed::erase(&mut tx, &key, &all.alias, last).await?;
        let mut part = Erased {
            alias: all.alias.clone(),
            messages: batch.erased.len(),
            open: batch.open,
            events: events::erase_address(&mut tx, &batch.erased, &key, &all.alias).await?,
            sandbox_messages: 0,
            suppression: false,
        };
        if batch.last.is_none() {
            part.sandbox_messages = sandbox::erase_to(&mut tx, &spellings).await?;
            part.suppression = asked.suppression && suppressions::forget(&mut tx, &key).await?;
        }
        written(&mut tx, who, id, &part).await?;
        tx.commit().await?;
        all.messages += part.messages;
        all.open += part.open;
        all.events += part.events;
        all.sandbox_messages += part.sandbox_messages;
        all.suppression |= part.suppression;
        last = batch.last;
        if last.is_none() {
            return Ok(all);
        }
    }
}

/// Tells of what was erased, if anything was; of the address no more than its alias.
async fn written(conn: &mut PgConnection, who: &Who, id: Uuid, part: &Erased) -> Result<()> {
    if part.messages == 0 && part.sandbox_messages == 0 && !part.suppression {
        return Ok(());
    }
    audit::record(conn, who, "recipient.erased", ("recipient", id), None, Some(part)).await?;
    let data = serde_json::to_value(part).unwrap_or_default();
    let event = Event { kind: "recipient.erased", subject: "recipient", subject_id: id, data };
    events::emit(conn, &[event]).await
}

/// What stands for an address: nobody can tell the address by it without this database.
fn alias(salt: &str, lookup_key: &str) -> (Uuid, String) {
    let hash = Sha256::new().chain_update(salt).chain_update([0]).chain_update(lookup_key);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    // RFC 9562 §5.8: made of whatever its maker pleases.
    let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    (id, format!("erased-{}@erased.invalid", id.simple()))
}
