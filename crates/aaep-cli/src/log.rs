//! What a hub writes on standard error, in the format that its configuration names; standard output is
//! for what was asked for. Requests can be sent to a collector as spans, too.

use std::io;

use aaep_hub::config::{Config, LogFormat, LogLevel};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::exit;

#[cfg(feature = "otlp")]
mod otlp;

#[cfg(feature = "otlp")]
pub(crate) use otlp::trace_parent;

/// A log that is being written.
pub(crate) struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    #[cfg(feature = "otlp")]
    spans: Option<otlp::Spans>,
}

impl Log {
    /// Begins to write. `runtime` sends spans, where there is somewhere to send them.
    pub(crate) fn begin(config: &Config, runtime: Option<&tokio::runtime::Handle>) -> Self {
        let (filter, level) = reload::Layer::new(filter(config.log.level));
        let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
        let lines = match config.log.format {
            LogFormat::Text => lines.with_filter(filter).boxed(),
            LogFormat::Json => {
                exit::speak_json();
                lines.json().with_span_list(false).with_filter(filter).boxed()
            }
        };
        let registry = tracing_subscriber::registry().with(lines);
        #[cfg(feature = "otlp")]
        {
            let begun = config.log.otlp.as_deref().zip(runtime).map(otlp::Spans::begin);
            let (spans, layer) = match begun.transpose() {
                Ok(begun) => begun.unzip(),
                Err(why) => {
                    exit::say(&format!("No spans are sent: {why}"));
                    (None, None)
                }
            };
            // A program that embeds this has set up its own logs.
            let _ = registry.with(layer).try_init();
            Self { level, spans }
        }
        #[cfg(not(feature = "otlp"))]
        {
            if config.log.otlp.is_some() && runtime.is_some() {
                exit::say("No spans are sent: this command was built without the feature `otlp`.");
            }
            let _ = registry.try_init();
            Self { level }
        }
    }

    /// Writes what is at least this important from now on.
    pub(crate) fn set_level(&self, level: LogLevel) {
        // It fails only once nobody writes any more.
        let _ = self.level.reload(filter(level));
    }

    /// Sends what waits. To be called while the runtime still works, and not on it.
    pub(crate) fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(spans) = self.spans {
            spans.end();
        }
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
