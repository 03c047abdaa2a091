//! A message in the moment of its acceptance: what its sender is answered, without asking the
//! database once more. So nothing can fail any longer once the message is kept.

use chrono::{DateTime, Utc};

use super::{
    Item, NewRecipient,
    store::read::{Recipient, Row, Whole},
};

/// What a look at the message would have shown at the time of its acceptance.
pub fn fresh(item: &Item, at: DateTime<Utc>) -> Whole {
    let n_open = item.n_open();
    let due = item.send_at.map_or(at, |it| it.max(at));
    let row = Row {
        message_id: item.message_id,
        api_key_id: Some(item.api_key_id),
        created_at: at,
        internet_id: item.internet_id.clone(),
        from_header: item.from_header.clone(),
        to_header: item.to_header.clone(),
        cc_header: item.cc_header.clone(),
        reply_to: item.reply_to.clone(),
        subject: item.subject.clone(),
        size: i64::try_from(item.bytes.len()).unwrap_or(i64::MAX),
        tags: item.tags.clone(),
        metadata: item.metadata.clone(),
        send_at: item.send_at,
        expires_at: item.expires_at,
        n_recipients: i32::try_from(item.recipients.len()).unwrap_or(i32::MAX),
        n_open: i32::try_from(n_open).unwrap_or(i32::MAX),
        n_unknown: 0,
        n_accepted: 0,
        n_attempts: 0,
        resends: 0,
        retries: 0,
        started_at: None,
        last_relay: None,
        last_error: None,
        outcome: (n_open == 0).then(|| "suppressed".to_owned()),
        settled_at: (n_open == 0).then_some(at),
        erased_at: None,
        leased: false,
        next_at: (n_open > 0).then_some(due),
    };
    let recipients = item.recipients.iter().map(|it| recipient(it, at, due)).collect();
    Whole { row, recipients, attempts: Vec::new(), said: Vec::new() }
}

fn recipient(it: &NewRecipient, at: DateTime<Utc>, due: DateTime<Utc>) -> Recipient {
    let suppressed = it.suppressed.is_some();
    Recipient {
        field: it.field.to_owned(),
        address: it.address.clone(),
        state: if suppressed { "suppressed" } else { "queued" }.to_owned(),
        next_at: (!suppressed).then_some(due),
        tries: 0,
        relay: None,
        code: None,
        enhanced: None,
        reason: suppressed.then(|| "suppressed".to_owned()),
        text: it.suppressed.clone(),
        remote_queue_id: None,
        settled_at: suppressed.then_some(at),
    }
}
