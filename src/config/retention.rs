//! How long what is kept.

use super::{reader::Reader, value};
use std::time::Duration;

const DAY: f64 = 86_400.0;

/// Windows, from the end of what is kept; none for ever.
#[derive(Debug, Clone)]
pub struct Retention {
    pub content: Option<Duration>,
    pub messages: Option<Duration>,
    pub events: Option<Duration>,
    pub sandbox: Option<Duration>,
    pub audit: Option<Duration>,
}

impl Retention {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let mut window = |name, key, default, doc| r.value(name, key, default, doc, window);
        Self {
            content: window(
                "POSTROOM_RETENTION_CONTENT",
                "retention.content",
                "30d",
                "How long bodies and attachments are kept after their message has settled; off: for ever.",
            ),
            messages: window(
                "POSTROOM_RETENTION_MESSAGES",
                "retention.messages",
                "90d",
                "How long messages, recipients and attempts are kept after they have settled; off: for ever.",
            ),
            events: window(
                "POSTROOM_RETENTION_EVENTS",
                "retention.events",
                "90d",
                "How long events are kept; off: for ever.",
            ),
            sandbox: window(
                "POSTROOM_RETENTION_SANDBOX",
                "retention.sandbox",
                "14d",
                "How long messages stay in the sandbox; off: for ever.",
            ),
            audit: window(
                "POSTROOM_RETENTION_AUDIT",
                "retention.audit",
                "365d",
                "How long the audit trail is kept; off: for ever.",
            ),
        }
    }
}

/// A day at least: shorter is a slip of the hand, and cannot be taken back.
fn window(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        text => value::span(DAY..=3_650.0 * DAY)(text).map(Some).map_err(|_| {
            "must be off, or a time from 1d to 3650d (a unit ms, s, m, h, d follows)".to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_day_at_least_or_off() {
        assert_eq!(window("off"), Ok(None));
        assert_eq!(window("1d"), Ok(Some(Duration::from_secs(86_400))));
        for wrong in ["0", "1h", "-1d", "30", "4000d", "never"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
