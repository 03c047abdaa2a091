//! Traces for a collector, over OTLP: each request, and what happened in it. Compiled in by the
//! feature `otel`, and silent until an endpoint is set.
//!
//! What the log level lets through is traced, and nothing else. The exporter has a thread and an
//! HTTP client of its own, since it must not need the runtime that it speaks of.

use std::{sync::OnceLock, thread, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::{Layer, registry::LookupSpan};

/// A collector that does not take spans in this time goes without them.
const PATIENCE: Duration = Duration::from_secs(5);

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The layer that hands spans to the collector at this URL; none where it cannot be made.
pub fn layer<S>(endpoint: &str) -> Option<Box<dyn Layer<S> + Send + Sync>>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let resource = Resource::builder().with_service_name("postroom").build();
    // The blocking client refuses to be made inside a runtime.
    let made = thread::spawn(move || {
        let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        exporter.with_endpoint(url).with_timeout(PATIENCE).build()
    });
    let exporter = match made.join() {
        Ok(Ok(exporter)) => exporter,
        Ok(Err(error)) => {
            eprintln!("postroom: no traces are exported: {error}");
            return None;
        }
        Err(_) => return None,
    };
    let provider =
        SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let tracer = provider.tracer("postroom");
    let _kept = PROVIDER.set(provider);
    Some(tracing_opentelemetry::layer().with_tracer(tracer).boxed())
}

/// Hands over what is left. Blocks, for some seconds at most.
pub fn flush() {
    if let Some(provider) = PROVIDER.get() {
        // A collector that is away must not keep the process.
        let _ = provider.shutdown_with_timeout(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::mpsc,
    };

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[tokio::test]
    async fn a_span_reaches_the_collector_even_from_within_a_runtime() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, seen) = mpsc::channel();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
            while !String::from_utf8_lossy(&bytes).contains("the span of a test") {
                let n = client.read(&mut part).unwrap();
                bytes.extend(&part[..n]);
                if n == 0 {
                    break;
                }
            }
            client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            sender.send(String::from_utf8_lossy(&bytes).into_owned()).unwrap();
        });
        let subscriber = tracing_subscriber::registry().with(layer(&endpoint));
        tracing::subscriber::with_default(subscriber, || {
            drop(tracing::info_span!("the span of a test").entered());
        });
        tokio::task::spawn_blocking(flush).await.unwrap();
        let seen = seen.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(seen.starts_with("POST /v1/traces"), "{seen}");
        assert!(seen.contains("the span of a test") && seen.contains("postroom"), "{seen}");
    }
}
