//! Logs on stderr, and traces to a collector if one is set.

use std::fmt::{self, Debug};
use std::io::IsTerminal;

use http::{HeaderMap, HeaderName};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing::field::Field;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat};
use crate::failure::Failure;

/// Where collectors take traces, by the OTLP specification.
const TRACES_PATH: &str = "/v1/traces";

const TRACEPARENT: &str = "traceparent";

/// What has to be flushed at the end.
pub struct Traces(Option<SdkTracerProvider>);

/// Starts the log and, if an endpoint is set, the export of traces.
pub fn start(config: &Config) -> Result<Traces, Failure> {
    // Checked when the setting was read.
    let filter: Targets = config.log_level.parse().unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match config.log_format {
        LogFormat::Human => lines
            .with_ansi(std::io::stderr().is_terminal())
            .fmt_fields(format::debug_fn(write_field))
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let provider = config.otlp_endpoint.as_deref().map(exporting).transpose()?;
    let spans = provider.as_ref().map(|provider| {
        // Only spans of our own: those of the exporter's client would feed themselves.
        let ours = Targets::new().with_target("anabranch", LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("anabranch"))
            .with_filter(ours)
    });
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(spans)
        .try_init()
        .map_err(|error| Failure::setup(format!("the log can't be started: {error}")))?;
    Ok(Traces(provider))
}

/// A field as people read it: the message first and bare, nothing that is for collectors only.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name if name.starts_with("otel.") => Ok(()),
        name => write!(writer, " {name}={value:?}"),
    }
}

fn exporting(endpoint: &str) -> Result<SdkTracerProvider, Failure> {
    let base = endpoint.trim_end_matches('/');
    let url = match base.strip_suffix(TRACES_PATH) {
        Some(_) => base.to_owned(),
        None => format!("{base}{TRACES_PATH}"),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(url)
        .build()
        .map_err(|error| {
            let message = format!("the setting `otlp-endpoint` ({endpoint}): {error}; mend it");
            Failure::setup(message)
        })?;
    let resource = Resource::builder().with_service_name("anabranch").build();
    Ok(SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(exporter)
        .build())
}

/// The caller's span, if it names one (W3C `traceparent`), becomes the parent of ours.
pub fn join_callers_trace(headers: &HeaderMap, span: &Span) {
    if !headers.contains_key(TRACEPARENT) {
        return;
    }
    let context = TraceContextPropagator::new().extract(&Headers(headers));
    // Without an exporter there is nothing to join.
    let _ = span.set_parent(context);
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

impl Traces {
    /// Whether traces are exported.
    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sends what is left.
    pub async fn flush(self) {
        let Some(provider) = self.0 else {
            return;
        };
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        match flushed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not exported"),
            Err(error) => tracing::warn!(%error, "the last traces were not exported"),
        }
    }
}
