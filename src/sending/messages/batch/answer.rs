//! What a batch is answered, and each of its messages.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    error::{Error, Issue, SuppressedRecipient},
    http::problem,
    sending::messages::accept::Item,
};

/// An answer for each message, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// Every message was taken.
    pub ok: bool,
    pub accepted: usize,
    pub refused: usize,
    pub messages: Vec<ItemAnswer>,
    /// Only where none was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

impl BatchAnswer {
    pub fn of(messages: Vec<ItemAnswer>) -> Self {
        let accepted = messages.iter().filter(|it| it.id.is_some()).count();
        let none = accepted == 0;
        Self {
            ok: accepted == messages.len(),
            accepted,
            refused: messages.len() - accepted,
            messages,
            error: none.then(|| "none of the messages was accepted".to_owned()),
            code: none.then_some("NOTHING_ACCEPTED"),
        }
    }
}

/// What one message of a batch would have been answered alone.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemAnswer {
    /// 202: the message is kept, and will be sent; else why not.
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// With its angle brackets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The fields of the message that mean nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<SuppressedRecipient>,
}

impl ItemAnswer {
    pub fn accepted(item: &Item, ignored: Vec<String>) -> Self {
        Self {
            status: 202,
            id: Some(item.message_id),
            message_id: Some(format!("<{}>", item.internet_id)),
            ignored,
            ..Self::default()
        }
    }

    pub fn refused(error: Error) -> Self {
        let (status, problem) = problem::of(error);
        Self {
            status: status.as_u16(),
            error: Some(problem.error),
            code: Some(problem.code),
            issues: problem.issues,
            suppressed: problem.suppressed,
            ..Self::default()
        }
    }
}
