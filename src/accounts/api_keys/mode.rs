//! What becomes of the messages of a key.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyMode {
    /// They are sent.
    #[default]
    Live,
    /// They are accepted, queued and worked on as others are, and kept in the sandbox instead of
    /// being sent.
    Capture,
}

impl KeyMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Capture => "capture",
        }
    }

    /// From the word kept in a row, which a constraint holds to these two.
    pub(super) fn from_row(word: &str) -> Self {
        if word == "capture" { Self::Capture } else { Self::Live }
    }
}
