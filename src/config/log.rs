//! What is written to the log, and how.

use super::{reader::Reader, value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Silent,
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    /// Kept for compatibility: nothing is logged above "error", so it is the same.
    Fatal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

#[derive(Debug, Clone)]
pub struct Log {
    pub level: LogLevel,
    pub format: LogFormat,
    /// The collector that traces go to, over OTLP.
    pub otlp_endpoint: Option<String>,
}

impl Log {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            level: r.value(
                "LOG_LEVEL",
                "log.level",
                "info",
                "silent, trace, debug, info, warn, error or fatal.",
                value::word(&[
                    ("silent", LogLevel::Silent),
                    ("trace", LogLevel::Trace),
                    ("debug", LogLevel::Debug),
                    ("info", LogLevel::Info),
                    ("warn", LogLevel::Warn),
                    ("error", LogLevel::Error),
                    ("fatal", LogLevel::Fatal),
                ]),
            ),
            format: r.value(
                "LOG_FORMAT",
                "log.format",
                "json",
                "json, or text for people.",
                value::word(&[("json", LogFormat::Json), ("text", LogFormat::Text)]),
            ),
            otlp_endpoint: r.optional(
                "POSTROOM_OTLP_ENDPOINT",
                "log.otlp_endpoint",
                "A collector that also gets what is logged, as traces (OTLP over http://host:4318); only in a \
                 binary built with the feature `otel`.",
                collector,
            ),
        }
    }
}

fn collector(text: &str) -> Result<String, String> {
    if !cfg!(feature = "otel") {
        return Err("this binary was built without the feature otel".to_owned());
    }
    match text.strip_prefix("http://") {
        Some(rest) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err("must be http://host:port".to_owned()),
    }
}
