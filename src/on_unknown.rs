//! The one policy that exists at four levels: message, key, relay, instance.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with a recipient of whom it is not known whether the relay took the message: the final dot
/// was sent, and no reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum OnUnknown {
    /// Wait for a person, or for knowledge.
    Hold,
    /// Send again: same Message-ID, same bytes.
    Resend,
}

impl OnUnknown {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Resend => "resend",
        }
    }
}
