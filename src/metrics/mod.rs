//! What is counted, and how it is shown to Prometheus.
//!
//! Counters and histograms of this process live in [`Metrics`]; what is true at the moment of a
//! scrape (the queue, the pools, the relays) comes as a [`Snapshot`] and leaves no trace, so that a
//! relay that is gone is shown no more. Labels are bounded: routes as written, relays by name and
//! id, closed lists otherwise. Never an address.

mod http;
mod process;
mod sending;
mod snapshot;

use std::time::Duration;

use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        histogram::Histogram,
    },
    registry::Registry,
};

pub use sending::{Attempt, Sending};
pub use snapshot::{Breaker, Chore, Kept, Kind, Pool, Relay, Snapshot, Work};

/// The name before every metric of ours; those of the process carry the usual names.
const PREFIX: &str = "postroom";

/// Upper bounds of a histogram, in seconds.
#[derive(Debug, Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// A histogram by labels.
type Timings<L> = Family<L, Histogram, Buckets>;

/// Counters and histograms of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub http: http::Http,
    pub sending: Sending,
    claims: Histogram,
    claimed: Counter,
    forgotten: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let http = http::Http::new(&mut registry);
        let sending = Sending::new(&mut registry);
        let claims =
            Buckets(&[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0])
                .new_metric();
        let claimed = Counter::default();
        registry.register(
            "queue_claim_seconds",
            "How long the database took to hand out jobs",
            claims.clone(),
        );
        registry.register("queue_claimed", "Jobs that this process has claimed", claimed.clone());
        let forgotten = Family::default();
        let help = "What retention has forgotten";
        registry.register("retention_deleted", help, Family::clone(&forgotten));
        Self { registry, http, sending, claims, claimed, forgotten }
    }

    /// The database handed out so many jobs.
    pub fn claimed(&self, jobs: usize, took: Duration) {
        self.claims.observe(took.as_secs_f64());
        self.claimed.inc_by(u64::try_from(jobs).unwrap_or(0));
    }

    /// Retention has forgotten so many rows of a class.
    pub fn forgotten(&self, class: &'static str, rows: u64) {
        self.forgotten.get_or_create(&[("class", class)]).inc_by(rows);
    }

    /// Everything, as OpenMetrics text.
    pub fn render(&self, now: &Snapshot) -> String {
        let mut text = String::new();
        for registry in [&self.registry, &now.registry(), &process::registry()] {
            encode_registry(&mut text, registry).expect("a String takes all");
        }
        encode_eof(&mut text).expect("a String takes all");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_shown_and_ends_once() {
        let metrics = Metrics::new();
        metrics.sending.accepted();
        metrics.claimed(3, Duration::from_millis(2));
        let text = metrics.render(&Snapshot::default());
        for line in [
            "postroom_messages_accepted_total 1",
            "postroom_queue_claimed_total 3",
            "postroom_queue_claim_seconds_bucket{le=\"0.0025\"} 1",
            "postroom_database_up 0.0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
    }
}
