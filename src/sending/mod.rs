//! What goes out: one accepted message, kept, sent, and truthfully accounted for per recipient.
//!
//! This page is the state machine and its tables. `migrations/` holds it as SQL, `queue/` and
//! [`messages`] as code; where they disagree, one of the three is wrong.
//!
//! # Promises
//!
//! 1. An accepted message (its 202 was sent) is never lost.
//! 2. It is never sent twice without saying so: a second copy leaves only after a policy
//!    (`resend`) or a person (`resolve`) said so, with the same Message-ID and the same bytes.
//! 3. Nothing is called `sent` that no server accepted, and nothing `failed` that one may have.
//! 4. One stuck relay holds up only the messages that can leave through nothing else.
//!
//! # Tables
//!
//! | table | a row is | hot |
//! |---|---|---|
//! | `messages` | one accepted `POST /send` (wire name: job): header facts, counters, outcome | yes |
//! | `message_content` | a chunk (≤ 256 KiB) of the composed bytes; written once; until the first attempt its `Date` may move with the time of sending | no |
//! | `recipients` | one envelope address of a message, its state and the last words about it | yes |
//! | `attempts` | one SMTP transaction (or the failure to begin one): relay, phase, words | append |
//! | `attempt_recipients` | what one transaction said of one recipient | append |
//! | `jobs` | work left, of any kind; a row leaves when its work ends | very |
//! | `idempotency_keys` | `(api key, key)` → request hash, message; 24 hours | append |
//! | `relays`, `api_keys`, `suppressions`, `paused_scopes`, `limits` | configuration | no |
//! | `relay_breakers`, `limit_spent` | what all processes share about the way out | small |
//! | `events`, `audit` | what happened, written in the transaction that made it so | append |
//! | `processes` | one running Postroom: its heartbeat tells a dead owner from a slow one | small |
//! | `chores` | a leased row per periodic piece of work | small |
//!
//! # The life of a recipient
//!
//! ```text
//!                      ┌────────────── suppressed / expired / cancelled (settled, not accepted)
//!                      │
//!   queued ──claim──► (leased) ──mark──► sending ──2xx to the dot──► sent ──► delivered, bounced,
//!     ▲  ▲             │   │               │ │                                complained (later)
//!     │  │             │   │               │ └─4xx/5xx to the dot─► deferred | failed
//!     │  └──not counted┘   └─refused at RCPT, relay faults─► deferred | failed
//!     │                                    │
//!     └──── resend / resolve ◄── unknown ◄─┘ no reply to the dot, or the process died
//! ```
//!
//! A `failed`, `expired` or no longer `suppressed` recipient is `queued` once more when somebody asks
//! for a retry; `cancelled` is final.
//!
//! `queued` and `deferred` are both "work left"; `deferred` says that a server was asked and said
//! "later". `sending` means exactly: **a final dot may have been sent, and no answer is recorded**.
//! It is written by the mark and by nothing else. "Leased" is not stored in `recipients`: it is the
//! state of the message's job.
//!
//! Each recipient carries: `state`, `next_at` (when it is due, null when it is not waiting), `tries`
//! (transactions in which a server spoke of it), `code`, `enhanced`, `text`, `reason` (the last
//! words), `relay_id`, `remote_queue_id`, `attempt_id` (the transaction that holds or held it),
//! `settled_at`.
//!
//! # The job of a message
//!
//! One `jobs` row of kind `send` per message that has work left: `job_id = message_id`. Its lane is
//! the sender's domain, which is the set of relays it can leave through. `due_at` is the least `next_at` of its
//! recipients that are queued or deferred. The row goes when no recipient is queued or deferred.
//! A process sleeps until the least `due_at` that it saw, a poll at most, and a bell wakes it when an
//! earlier one is written: what is due at a known time leaves then, whoever still runs.
//!
//! ```text
//!   (no row) ──accept──► ready ──claim──► leased ──finish──► (gone) | ready again, due later
//!                          ▲                 │
//!                          └── lease ended ◄─┘   third death in a row: dead, with its reason
//! ```
//!
//! * **Clock.** Due times and leases compare with the database's clock only (`clock_timestamp()`,
//!   not the transaction's start: a statement that waited for a lock must see the time it got it).
//! * **Claim** (no synchronous commit): lanes with due work are listed; the process gives each a
//!   number of free slots (its relays' free connections, breakers, pauses); one statement takes at most that
//!   many per lane `for update skip locked`, sets a fresh `lease_id`, `leased_until`, `leased_by`.
//! * **Heartbeat** (no synchronous commit): a third of a lease apart, `leased_until` is pushed out
//!   for all leases this process still works on, `where lease_id = any(mine)`.
//! * **The fence** is a pair of job and lease: a process can hold a lost and a fresh lease of one
//!   job at a time. Everything that a worker writes about its job is in a transaction that first
//!   locks the job row `where lease_id = $mine`. No row: the lease is lost, the write does nothing
//!   (except the late truth, below). No grouped write holds two items of one message.
//! * **Recovery.** Any process takes back expired leases, `for update skip locked`, in one
//!   transaction with what it means for the message: recipients in `sending` become `unknown`
//!   (attempt ended: "process died"); others stay as they are, due now. If the owner's
//!   heartbeat had ended, that is a *death* of the job; a finished step resets the count. Two
//!   deaths in a row: the job runs alone in its process. Three: the job is `dead`, its recipients
//!   without outcome are `failed` with that reason, and the message settles. A lease that expired under
//!   a living owner (the database was away) is no death.
//! * A crash costs a lease, not an attempt: `tries` counts only what a server said.
//!
//! # The mark
//!
//! When the message's bytes are sent, all but the final dot, the mark is written (grouped over
//! concurrent transactions, synchronous commit):
//!
//! 1. lock the jobs `where lease_id = $mine`, the messages, and the recipients; only then, in a statement
//!    of its own, ask whether the lease has run out, and give it a whole lease again (a statement that
//!    waited for a row which nobody changed does not look at its time again);
//! 2. for those that live: insert the attempt with `phase = 'data'` and `marked_at`, set its accepted
//!    recipients `queued|deferred → sending`, `attempt_id`;
//! 3. commit; only then is the dot sent, and only for the jobs that passed step 1.
//!
//! So a process frozen before the mark cannot send its dot after another has taken over: its mark
//! finds no lease. A process frozen between the mark and the dot can; its recipients are `unknown`
//! by then, which is the truth. A mark whose own commit has no answer is treated as not given: the
//! connection is closed without the dot, and completion says "not sent" under the fence.
//! A cancelled or settled recipient is not `queued|deferred` any more, and one that has been suppressed
//! since, or whose message's time is over, counts as little; if the mark finds fewer
//! recipients than RCPT named, it is refused whole, and the transaction is abandoned before the dot.
//!
//! # Completion
//!
//! Grouped over concurrent transactions, one database transaction with synchronous commit, under
//! the fence: the attempt's end and its per-recipient words; each recipient's new state; the
//! message's counters; events; the job gone or due again; all or nothing.
//!
//! **An attempt speaks once.** A completion that is written again, because the answer to its commit
//! was lost, finds its attempts ended and changes nothing.
//!
//! **Late truth.** If the fence finds the lease lost, the reply we hold may be the missing knowledge.
//! The attempt's own row is completed in any case. That the relay accepted settles a recipient that is
//! `unknown`, or waits for a further copy. That the dot was refused, or never sent, counts for those
//! that this very attempt (`attempt_id`) left `unknown` or queued again.
//!
//! **Maybe accepted.** Once nothing is known of some copy, `failed`, `expired`, `suppressed` and `cancelled` are
//! not true any more, whatever becomes of a later copy: such a recipient is `unknown` again, held, and
//! told as `recipient.unknown`. Only the late refusal of the one copy there was takes that back.
//!
//! A completion that cannot be written (database away) is kept in memory and tried again until it is
//! written or fenced off; the heartbeat cannot run then either, so recovery makes the recipients
//! `unknown` and the late truth settles them when the database is back.
//!
//! # The way out
//!
//! * **Places.** `maxConnections` is divided among the processes that live; each gives its part to
//!   lanes, one slot at a time ([`relays::slots`]). A session stays open for further messages until
//!   it is too old, used too often, or in doubt.
//! * **Breakers.** A process counts the faults it sees; that a relay rests, is probed and is back
//!   is written by compare-and-swap, once for all processes, with one event ([`relays::breaker`]).
//! * **Pauses** ([`pauses`]) and **limits** ([`limits`]): a paused lane has no places; recipients
//!   that are paused or over a limit wait with `reason` `paused` or `limited`, nothing counted, and
//!   are woken when the pause or the limit changes. A limit counts what was accepted, or may have been.
//!
//! # What an outcome does
//!
//! `outcome::classify(phase, reply or silence)` gives class and scope:
//!
//! | class | recipient | then |
//! |---|---|---|
//! | accepted | `sent` | – |
//! | recipient-permanent | `failed` | others go on |
//! | message-permanent | all due `failed` | no other relay is asked |
//! | relay-fault | unchanged | next eligible relay now; none left: due again by the relay schedule |
//! | not-for-this-relay | unchanged | next eligible relay now; none left: `failed` with that code |
//! | transient | `deferred`, `tries + 1` | same relay for two tries, then it may move; due by schedule or by the wait named |
//! | unknown | `unknown` | by policy: `hold` stays; `resend` → `queued`, due now |
//!
//! No failover ever follows the dot: once marked, the transaction is the last of this run for its
//! recipients, and a refusal of the relay's there leaves them waiting, due by schedule. After the retry window (5 days from accept, from the time of sending, or from the last retry) a recipient that would be deferred is
//! `failed` with its last words; after the message's `expires_at` it is `expired`.
//!
//! `unknown` under `resend` happens at most three times for a recipient, then it is held; it is counted (`resends`) and told (`recipient.unknown` with
//! `action: resend`): a second copy is never silent. Policy: message, else key, else relay, else instance.
//!
//! # The message
//!
//! Counters on `messages` are kept in the same transactions: `n_recipients`, `n_open` (queued,
//! sending, deferred), `n_unknown`, `n_accepted`. Settled: `n_open = 0 and n_unknown = 0`; then
//! `settled_at` and `outcome` are set once and `send.completed` (at least one accepted) or `send.failed` is
//! emitted once. Wire status: `pending` = work left; `processing` = leased, or only unknown ones
//! left; `done` = settled, at least one accepted; `dead` = settled, none accepted.
//! `POST /jobs/{id}/resolve` settles `unknown` recipients: `sent`, `failed`, or `resend` (queued
//! again, job row made again).
//!
//! # Decisions about a message (`messages::decisions`)
//!
//! * **`sendAt`** (at most 30 days ahead; in the past: now) is the `next_at` of its recipients and the
//!   `due_at` of its job; the retry window and a `ttl` count from it, and the header's `Date` names it. An
//!   `expiresAt` must be later. `PATCH /jobs/{id}` moves it, and all of this, while no process works
//!   on the message and no attempt was made.
//! * **Cancel**: recipients that wait become `cancelled` (`unknown` again, where a copy may have
//!   arrived). What is marked is on its way. A process in the middle of a transaction finds its
//!   recipients gone at the mark, and sends no dot; the job's row stays its own until it ends it.
//! * **Retry**: `failed` and `expired` recipients, and `suppressed` ones that are so no longer, are
//!   queued with no tries and no faults, in a fresh retry window, with their `ttl` from now (a fixed
//!   `expiresAt` that has passed is dropped). Recipients that wait for a later try are due now.
//!   Never those that are accepted, unknown or cancelled. A settled message is open again,
//!   and will settle, and tell it, once more: `message.retried` with `reopened` stands between.
//!
//! `?wait` (`messages::wait`) looks at the counters, rung by whoever completes and once a second at
//! the least: it ends when the message has settled, or when nothing will become of it soon.
//!
//! # What does not leave
//!
//! A message has a `mode` from its accept on: `live`, `capture` (its key captures) or `test` (all its
//! recipients are test addresses, `…@test.invalid`). Recipients that no relay is asked for go the same
//! way as others: claimed, marked, judged, completed. Only who answers is another
//! (`deliver/carrier.rs`): the sandbox's table, or what a test address stands for. Such messages have lanes of their own,
//! `capture` and `test`, and wait for no relay; a `live` message may hold test recipients too. What is
//! learnt later, `delivered`, `bounced` or `complained`, is written for a test recipient in the
//! transaction of its completion.
//!
//! # Accepting
//!
//! Everything is parsed and composed before the database is asked. Concurrent requests share one
//! transaction (`messages::accept`): what is written already (the answer to an
//! earlier commit was lost), idempotency keys (in key order, one item per key and batch; an expired key is
//! taken over, a key outlives its message), then messages, content, recipients, jobs, events; if it
//! fails each item is tried alone; answers go out after the commit; then one `NOTIFY`, a hint only.
//! Suppressed recipients are checked in that transaction, at the start of each step, and by the mark.

pub mod limits;
pub mod messages;
pub mod outcome;
pub mod pauses;
pub mod recipients;
pub mod relays;
pub mod retry;
pub mod sandbox;
pub mod suppressions;
pub mod templates;
use std::sync::Arc;

use axum::extract::FromRef;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{app::App, error::Result, queue::Grouped};
use messages::{
    Deliver,
    accept::{self, Accepted, Item},
};

/// What sending keeps in memory: the relays as they are, and the places where writes meet.
#[derive(Clone)]
pub struct Sending {
    pub app: App,
    pub relays: Arc<relays::Book>,
    pub accepting: Grouped<Item, Accepted>,
    pub work: Arc<Deliver>,
}

impl FromRef<Sending> for App {
    fn from_ref(sending: &Sending) -> Self {
        sending.app.clone()
    }
}

/// A batch of accepted messages holds at most this many, and about so many bytes.
const ACCEPT: (usize, usize) = (256, 16 * 1024 * 1024);

impl Sending {
    /// Opens the book of relays and the writers, which end with `tasks`.
    pub async fn start(app: &App, tasks: &TaskTracker) -> Result<Self> {
        let relays = relays::Book::open(app.clone()).await?;
        Ok(Self::over(app, relays, tasks))
    }

    /// As [`start`](Self::start), but nothing is asked of the database: enough for the API's description.
    pub fn idle(app: &App, tasks: &TaskTracker) -> Self {
        Self::over(app, relays::Book::closed(app.clone()), tasks)
    }

    /// Reads the relays, pauses and limits again: one of them was changed. Whoever waited for a pause
    /// or a limit is looked at again, by each process once it knows of the change.
    pub async fn refresh(&self) {
        if self.relays.refresh().await
            && let Err(error) = messages::held::wake(&self.app).await
        {
            tracing::warn!(%error, "what was held could not be woken; it wakes by itself");
        }
    }

    /// Reads them again whenever they change, until told to stop.
    pub async fn keep_fresh(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            self.refresh().await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.relays.is_stale() => (),
            }
        }
    }

    fn over(app: &App, relays: Arc<relays::Book>, tasks: &TaskTracker) -> Self {
        let (db, metrics) = (app.db.clone(), app.metrics.clone());
        let accepting = Grouped::start(
            tasks,
            ACCEPT.0,
            ACCEPT.1,
            |it: &Item| it.bytes.len(),
            |it: &Item| it.idempotency.as_ref().map(|it| (it.api_key_id, it.key.clone())),
            move |items: Arc<Vec<Item>>| {
                let (db, metrics) = (db.clone(), metrics.clone());
                async move { accept::accept_many(&db, &metrics, &items).await }
            },
        );
        let work = Arc::new(Deliver::start(app.clone(), relays.clone(), tasks));
        Self { app: app.clone(), relays, accepting, work }
    }
}
