//! Messages, their recipients, and the transactions with relays.

use std::{borrow::Cow, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use uuid::Uuid;

use super::{Buckets, Timings};

type One = [(&'static str, &'static str); 1];
type OfRelay = [(&'static str, Cow<'static, str>); 4];

/// Seconds a message may wait: from a moment to the five days of the retry window.
const WAITS: Buckets = Buckets(&[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0,
    21_600.0, 86_400.0, 432_000.0,
]);
const TRANSACTIONS: Buckets = Buckets(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
]);

/// What becomes of recipients, as counted: the settled states, and those in which something was
/// learnt but not the end.
const OUTCOMES: [&str; 7] =
    ["sent", "failed", "unknown", "deferred", "suppressed", "cancelled", "expired"];

/// What this process has sent.
#[derive(Debug)]
pub struct Sending {
    accepted: Counter,
    attempts: Family<One, Counter>,
    recipients: Family<One, Counter>,
    transactions: Timings<OfRelay>,
    first_attempt: Histogram,
    settled: Timings<One>,
}

/// One transaction with a relay, or the failure to begin one.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    pub relay_id: Uuid,
    pub relay_name: &'a str,
    /// How far it came.
    pub phase: &'static str,
    /// What it meant.
    pub result: &'static str,
    pub took: Duration,
}

impl Sending {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let new = Self {
            accepted: Counter::default(),
            attempts: Family::default(),
            recipients: Family::default(),
            transactions: Timings::new_with_constructor(TRANSACTIONS),
            first_attempt: Histogram::new(WAITS.0.iter().copied()),
            settled: Timings::new_with_constructor(WAITS),
        };
        // Known from the start, so that the first failure is an increase from zero.
        for outcome in OUTCOMES {
            let _zero = new.recipients.get_or_create(&[("outcome", outcome)]);
        }
        new.register(registry);
        new
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("messages_accepted", "Messages taken for sending", self.accepted.clone());
        registry.register("attempts", "SMTP transactions, by outcome", self.attempts.clone());
        registry.register(
            "recipients",
            "Recipients of whom something was learnt, by what it was",
            self.recipients.clone(),
        );
        registry.register(
            "smtp_transaction_seconds",
            "How long transactions with relays took, by the phase they reached and the result",
            self.transactions.clone(),
        );
        registry.register(
            "message_first_attempt_seconds",
            "From the acceptance of a message (or its appointed time) to its first attempt",
            self.first_attempt.clone(),
        );
        registry.register(
            "message_settled_seconds",
            "From the acceptance of a message, or its time of sending, to its settlement, by its outcome",
            self.settled.clone(),
        );
    }

    /// One message was accepted.
    pub fn accepted(&self) {
        self.accepted.inc();
    }

    /// One SMTP transaction ended.
    pub fn attempt(&self, it: &Attempt<'_>) {
        self.attempts.get_or_create(&[("outcome", it.result)]).inc();
        let labels = [
            ("relay", Cow::Owned(it.relay_name.to_owned())),
            ("relay_id", Cow::Owned(it.relay_id.to_string())),
            ("phase", Cow::Borrowed(it.phase)),
            ("result", Cow::Borrowed(it.result)),
        ];
        self.transactions.get_or_create(&labels).observe(it.took.as_secs_f64());
    }

    /// A message was taken to a relay for the first time, so long after it was accepted.
    pub fn first_attempt(&self, waited: f64) {
        self.first_attempt.observe(waited.max(0.0));
    }

    /// Something was learnt of a recipient. What is no outcome is not counted.
    pub fn recipient(&self, outcome: &str) {
        if let Some(outcome) = OUTCOMES.into_iter().find(|it| *it == outcome) {
            self.recipients.get_or_create(&[("outcome", outcome)]).inc();
        }
    }

    /// A message has settled, so many seconds after it was accepted.
    pub fn settled(&self, outcome: &str, after: f64) {
        const KNOWN: [&str; 6] =
            ["sent", "partial", "failed", "suppressed", "cancelled", "expired"];
        let outcome = KNOWN.into_iter().find(|it| *it == outcome).unwrap_or("other");
        self.settled.get_or_create(&[("outcome", outcome)]).observe(after.max(0.0));
    }
}
