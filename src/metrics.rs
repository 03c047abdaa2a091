//! What is counted, and how it is shown to Prometheus.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

type ByOutcome = [(&'static str, &'static str); 1];

/// Counters of this process; the gauges are set when they are shown.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    attempts: Family<ByOutcome, Counter>,
    accepted: Counter,
    depth: Gauge,
    oldest: Gauge<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("postroom");
        let attempts = Family::<ByOutcome, Counter>::default();
        let (accepted, depth) = (Counter::default(), Gauge::default());
        let oldest = Gauge::<f64, AtomicU64>::default();
        registry.register("attempts", "SMTP transactions, by outcome", attempts.clone());
        registry.register("messages_accepted", "Messages taken for sending", accepted.clone());
        registry.register("queue_depth", "Jobs with work left", depth.clone());
        registry.register(
            "queue_oldest_seconds",
            "How long the longest-waiting due job has been due",
            oldest.clone(),
        );
        Self { registry, attempts, accepted, depth, oldest }
    }

    /// One SMTP transaction ended.
    pub fn attempt(&self, outcome: &'static str) {
        self.attempts.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// One message was accepted.
    pub fn accepted(&self) {
        self.accepted.inc();
    }

    /// Everything, as OpenMetrics text.
    pub fn render(&self, depth: i64, oldest_seconds: f64) -> String {
        self.depth.set(depth);
        self.oldest.set(oldest_seconds);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String takes all");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_shown() {
        let metrics = Metrics::new();
        metrics.attempt("accepted");
        metrics.accepted();
        let text = metrics.render(3, 1.5);
        for line in [
            r#"postroom_attempts_total{outcome="accepted"} 1"#,
            "postroom_messages_accepted_total 1",
            "postroom_queue_depth 3",
            "postroom_queue_oldest_seconds 1.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
    }
}
