//! `POST /jobs/{id}/resolve`: a person says what became of recipients of whom nothing is known.

use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{RecipientState, store};
use crate::{accounts::access::Actor, address::EmailAddress, app::App, error::Result};

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The relay has it.
    Sent,
    /// The relay does not have it, and it shall not be sent again.
    Failed,
    /// Send it again: the same Message-ID and bytes; a second copy may arrive.
    Resend,
}

impl Answer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Resend => "to be sent again",
        }
    }

    pub fn state(self) -> RecipientState {
        match self {
            Self::Sent => RecipientState::Sent,
            Self::Failed => RecipientState::Failed,
            Self::Resend => RecipientState::Queued,
        }
    }
}

/// A resolution. Unknown fields are refused.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    #[serde(rename = "as")]
    pub answer: Answer,
    /// Only these recipients; absent: all that are unknown.
    #[schema(value_type = Option<Vec<String>>)]
    pub recipients: Option<Vec<EmailAddress>>,
}

/// Carries out a resolution, for whoever may see the message.
pub async fn resolve(app: &App, actor: &Actor, id: Uuid, resolution: &Resolution) -> Result<()> {
    store::resolve::resolve(
        (&app.db, &app.metrics),
        id,
        actor.decides()?,
        resolution,
        &actor.who(),
    )
    .await?;
    if resolution.answer == Answer::Resend {
        app.queue.bell.ring();
    }
    Ok(())
}
