//! Who may go now: what an operator has paused waits, and so does what is over a limit.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use uuid::Uuid;

use super::Deliver;
use crate::{
    error::Result,
    sending::{
        limits::{self, Bucket, Kept, Limit, Spending},
        messages::{
            RecipientState, held,
            store::{
                complete::{Change, Words},
                load::{Due, Head},
            },
        },
        pauses::{self, Pauses},
        relays::Book,
    },
};

/// What is paused is looked at again after this time, though it is woken when it may go.
const PAUSED: Duration = Duration::from_secs(10 * 60);

/// Those that may go, those that are held, and what the former have taken of the limits.
pub struct Gate {
    pub held: Vec<Change>,
    pub due: Vec<Due>,
    pub tickets: Tickets,
}

/// What was taken of the limits for recipients; given back when dropped, unless they were sent.
pub struct Tickets {
    book: Arc<Book>,
    taken: HashMap<Uuid, (Instant, Vec<Bucket>)>,
}

/// Sorts the recipients that are due.
pub async fn gate(work: &Deliver, head: &Head, due: Vec<Due>) -> Result<Gate> {
    let tickets = Tickets { book: work.relays.clone(), taken: HashMap::new() };
    let mut gate = Gate { held: Vec::new(), due: Vec::new(), tickets };
    let of_message = limits_of_message(work, head);
    for it in due {
        let domain = domain(&it.address);
        if let Some(text) = paused(&work.relays.pauses, head, domain) {
            gate.held.push(waits(&it, held::PAUSED, text, PAUSED));
            continue;
        }
        let purse = &work.relays.purse;
        let wanted: Vec<Kept> = of_message
            .iter()
            .cloned()
            .chain(purse.of(limits::Scope::RecipientDomain, domain))
            .map(|limit| (limit.bucket(), limit.most))
            .collect();
        match purse.spend(&wanted).await? {
            Spending::Spent => {
                let taken = wanted.into_iter().map(|(bucket, _)| bucket).collect();
                gate.tickets.taken.insert(it.recipient_id, (Instant::now(), taken));
                gate.due.push(it);
            }
            Spending::Wait(used_up, wait) => {
                gate.held.push(waits(&it, held::LIMITED, limits::words(&used_up), wait));
            }
        }
    }
    Ok(gate)
}

/// What an operator has paused. Lanes of sender domains that are paused are not claimed at all; this
/// is for what was claimed before, and for the lanes that need no relay.
fn paused(pauses: &Pauses, head: &Head, to: &str) -> Option<String> {
    let from = domain(&head.from_address);
    if pauses.holds(pauses::Scope::All, "") {
        Some("sending is paused".to_owned())
    } else if pauses.holds(pauses::Scope::SenderDomain, from) {
        Some(format!("mail from {from} is paused"))
    } else {
        let held = pauses.holds(pauses::Scope::RecipientDomain, to);
        held.then(|| format!("mail to {to} is paused"))
    }
}

fn limits_of_message(work: &Deliver, head: &Head) -> Vec<Limit> {
    let purse = &work.relays.purse;
    let mut limits = purse.of(limits::Scope::SenderDomain, domain(&head.from_address));
    if let Some(key) = head.api_key_id {
        limits.extend(purse.of(limits::Scope::Key, &key.to_string()));
    }
    limits
}

fn domain(address: &str) -> &str {
    address.rsplit_once('@').map_or("", |(_, domain)| domain)
}

fn waits(recipient: &Due, reason: &str, text: String, wait: Duration) -> Change {
    let to = match recipient.state.as_str() {
        "deferred" => RecipientState::Deferred,
        _ => RecipientState::Queued,
    };
    let words = Words { reason: Some(reason.to_owned()), text: Some(text), ..Words::default() };
    Change { wait, ..Change::of(recipient.recipient_id, to, words) }
}

impl Tickets {
    /// Counts those that a relay accepted, or may have.
    pub fn count(&mut self, changes: &[Change]) {
        for change in changes {
            let may_be_there = change.resend
                || matches!(change.to, RecipientState::Sent | RecipientState::Unknown);
            if may_be_there {
                self.taken.remove(&change.recipient_id);
            }
        }
    }
}

impl Drop for Tickets {
    fn drop(&mut self) {
        for (taken, buckets) in self.taken.values() {
            self.book.purse.give_back(buckets.iter(), *taken);
        }
    }
}
