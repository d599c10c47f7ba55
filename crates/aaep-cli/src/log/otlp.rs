//! Each request as a span, sent to a collector by OTLP over HTTP.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_transport::client::{HttpClient, Options};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::HttpError;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Span;
use tracing::level_filters::LevelFilter;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;

/// Where a collector takes spans, under its address.
const PATH: &str = "v1/traces";

/// How long a collector may take to answer, and how long the last spans are tried at the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends spans, until it is told to end.
pub(crate) struct Spans(SdkTracerProvider);

impl Spans {
    /// Sends spans to this collector from now on, on this runtime; and the layer that makes them.
    pub(crate) fn begin<S>(
        (collector, runtime): (&str, &Handle),
    ) -> Result<(Self, impl Layer<S> + Send + Sync + use<S>), String>
    where
        S: tracing::Subscriber + Send + Sync + for<'s> tracing_subscriber::registry::LookupSpan<'s>,
    {
        let options = Options {
            connect: PATIENCE,
            answer: PATIENCE,
            // A collector is a program of its own user, and is shown no token.
            trust_loopback: true,
            ..Options::default()
        };
        let client = HttpClient::new(collector, options).map_err(|error| error.to_string())?;
        let client = Arc::new(client);
        let courier =
            Courier { client, runtime: runtime.clone(), is_failing: AtomicBool::new(false) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(courier)
            .with_endpoint(format!("{}/{PATH}", collector.trim_end_matches('/')))
            .build()
            .map_err(|error| error.to_string())?;
        let name = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource =
            Resource::builder().with_service_name("aaep-hub").with_attribute(name).build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("aaep-hub"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(LevelFilter::INFO);
        Ok((Self(provider), layer))
    }

    /// Sends what waits.
    pub(crate) fn end(self) {
        // What is lost at the end is lost: nobody waits for a collector that is away.
        let _ = self.0.shutdown_with_timeout(PATIENCE);
    }
}

/// Makes the span of a request part of the trace that its sender names in `traceparent`.
pub(crate) fn trace_parent(span: &Span, headers: &HeaderMap) {
    if !headers.contains_key("traceparent") {
        return;
    }
    let context = TraceContextPropagator::new().extract(&Headers(headers));
    // Without a collector there is no layer that would take it.
    let _ = span.set_parent(context);
}

struct Headers<'h>(&'h HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// Carries what is exported with the hub's own client: TLS to other machines, its bounds, its runtime.
struct Courier {
    client: Arc<HttpClient>,
    runtime: Handle,
    is_failing: AtomicBool,
}

impl std::fmt::Debug for Courier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Courier").finish_non_exhaustive()
    }
}

impl opentelemetry_http::HttpClient for Courier {
    fn send_bytes<'me, 'made>(
        &'me self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'made>>
    where
        'me: 'made,
        Self: 'made,
    {
        Box::pin(async move {
            // The thread that exports is none of the runtime's.
            let client = self.client.clone();
            let sent = self.runtime.spawn(async move {
                let (head, body) = request.into_parts();
                client.request(head.method, PATH, head.headers, body).await
            });
            let sent = match sent.await {
                Ok(sent) => sent.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let sent = sent.and_then(|answer| match answer.status.is_success() {
                true => Ok(answer),
                false => Err(format!("it answered {}", answer.status)),
            });
            // Once for each time that it begins and ends, and not for each batch.
            let was_failing = self.is_failing.swap(sent.is_err(), Ordering::Relaxed);
            match &sent {
                Err(why) if !was_failing => {
                    tracing::warn!("Spans cannot be sent to the collector of log.otlp: {why}.");
                }
                Ok(_) if was_failing => tracing::info!("Spans reach the collector again."),
                _ => {}
            }
            let answer = sent?;
            let mut response = Response::new(answer.body);
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}
