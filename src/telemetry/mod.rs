//! The log: one line per event on standard error, as JSON or for people.
//!
//! With the feature `otel`, and an endpoint set, what is logged also reaches a collector as traces.
//! Panics are logged too, since what nobody reads on a terminal must not be lost.

#[cfg(feature = "otel")]
mod traces;

use crate::config::{Log, LogFormat, LogLevel};
use std::{
    io::{self, IsTerminal as _},
    panic,
    sync::Once,
};
use tracing_subscriber::{
    Layer as _, Registry, filter::LevelFilter, filter::Targets, fmt, layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// Starts the log of this process. Calling it again changes nothing.
pub fn init(log: &Log) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = match log.format {
            LogFormat::Json => fmt::layer().json().with_writer(io::stderr).boxed(),
            LogFormat::Text => {
                fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).boxed()
            }
        };
        // The filter is a layer of its own: one that belongs to another layer remembers, when a
        // library only asks whether it is enabled, a "no" that swallows the next event instead.
        // A test harness may have set a subscriber of its own, which then stays.
        let filtered = Registry::default().with(filter(log.level)).with(lines);
        #[cfg(feature = "otel")]
        let filtered = filtered.with(log.otlp_endpoint.as_deref().and_then(traces::layer));
        let _ = filtered.try_init();
        log_panics();
    });
}

/// Hands over what a collector has not got yet; blocks for some seconds at most.
pub fn flush() {
    #[cfg(feature = "otel")]
    traces::flush();
}

/// Our own level for all, except where a library says "info" about nothing at every start.
fn filter(level: LogLevel) -> Targets {
    let level = level_filter(level);
    let quiet = level.min(LevelFilter::WARN);
    Targets::new().with_default(level).with_target("sqlx::postgres::notice", quiet)
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Silent => LevelFilter::OFF,
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error | LogLevel::Fatal => LevelFilter::ERROR,
    }
}

fn log_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return usual(info);
        }
        let message = info.payload_as_str().unwrap_or("a panic without a text");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(panic.place = %place, panic.backtrace = %backtrace, "panic: {message}");
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn notices_of_the_database_are_quiet_unless_they_warn() {
        let filter = filter(LogLevel::Info);
        assert!(filter.would_enable("postroom::queue", &Level::INFO));
        assert!(!filter.would_enable("postroom::queue", &Level::DEBUG));
        assert!(!filter.would_enable("sqlx::postgres::notice", &Level::INFO));
        assert!(filter.would_enable("sqlx::postgres::notice", &Level::WARN));
    }

    #[test]
    fn silent_is_silent_and_fatal_still_shows_errors() {
        assert!(!filter(LogLevel::Silent).would_enable("postroom", &Level::ERROR));
        assert!(!filter(LogLevel::Silent).would_enable("sqlx::postgres::notice", &Level::WARN));
        assert!(filter(LogLevel::Fatal).would_enable("postroom", &Level::ERROR));
    }

    #[test]
    fn starting_twice_is_harmless() {
        let log = Log { level: LogLevel::Silent, format: LogFormat::Json, otlp_endpoint: None };
        init(&log);
        init(&log);
    }
}
