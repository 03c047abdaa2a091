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
        }
    }
}
