//! How work in the background is claimed.

use super::{reader::Reader, value};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Queue {
    /// How long a claim holds without a heartbeat; the price of a crash.
    pub lease: Duration,
    /// How often is looked for work when no bell rings.
    pub poll: Duration,
}

impl Queue {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            lease: r.value(
                "POSTROOM_QUEUE_LEASE",
                "queue.lease",
                "60s",
                "How long claimed work stays claimed after its process died.",
                value::span(1.0..=3_600.0),
            ),
            poll: r.value(
                "POSTROOM_QUEUE_POLL",
                "queue.poll",
                "1s",
                "How often to look for work when nothing announces it.",
                value::span(0.01..=60.0),
            ),
        }
    }
}
