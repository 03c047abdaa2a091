//! How long requests take, by route and class of status.

use std::{borrow::Cow, time::Duration};

use prometheus_client::registry::Registry;

use super::{Buckets, Timings};

type Labels = [(&'static str, Cow<'static, str>); 3];

/// Answered requests.
#[derive(Debug)]
pub struct Http {
    requests: Timings<Labels>,
}

impl Http {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let requests = Timings::new_with_constructor(Buckets(&[
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
            60.0,
        ]));
        registry.register(
            "http_request_duration_seconds",
            "How long requests took to answer, by route and class of status",
            requests.clone(),
        );
        Self { requests }
    }

    /// A request was answered. The route is the one written in the router, never the path asked
    /// for; a method that is not HTTP's own is not named.
    pub fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = METHODS.into_iter().find(|it| *it == method).unwrap_or("other");
        let class = match status {
            ..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            500.. => "5xx",
        };
        let labels = [
            ("method", Cow::Borrowed(method)),
            ("route", Cow::Owned(route.to_owned())),
            ("status", Cow::Borrowed(class)),
        ];
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Metrics, Snapshot};
    use super::*;

    #[test]
    fn an_invented_method_makes_no_series_of_its_own() {
        let metrics = Metrics::new();
        for method in ["BREW", "STEEP", "GET"] {
            metrics.http.answered(method, "(none)", 404, Duration::from_millis(3));
        }
        let text = metrics.render(&Snapshot::default());
        let count = |method: &str, n: u32| {
            let line = format!(
                "postroom_http_request_duration_seconds_count{{method=\"{method}\",route=\"(none)\",status=\"4xx\"}} {n}"
            );
            assert!(text.contains(&line), "{line} is not in\n{text}");
        };
        count("other", 2);
        count("GET", 1);
    }
}
