//! The mail sandbox: a real SMTP server inside Postroom that keeps what it is sent, to look at. The
//! messages of keys that capture are kept here too, without SMTP, whether the server runs or not.

mod listener;
mod routes;
mod session;
mod store;

use chrono::{DateTime, Utc};
use mail_parser::{Message, MessageParser, MimeHeaders as _};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub use listener::listen;
pub use routes::router;
pub use session::Received;
pub use store::{count, count_to, erase_to, forget, keep, oldest};

/// A message that the sandbox received.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxMessage {
    pub id: Uuid,
    pub received_at: DateTime<Utc>,
    pub helo: String,
    /// The envelope's sender.
    pub mail_from: String,
    /// The envelope's recipients.
    pub rcpt_to: Vec<String>,
    /// Without its angle brackets.
    pub message_id: Option<String>,
    pub subject: Option<String>,
    /// In bytes.
    pub size: i32,
    /// Only where one message is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// What a mail program would show.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    pub headers: Vec<Header>,
    pub text: Option<String>,
    pub html: Option<String>,
    pub attachments: Vec<Attached>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub size: usize,
}

impl SandboxMessage {
    fn new(row: store::Row, whole: bool) -> Self {
        let parser = MessageParser::default();
        let parsed = if whole { parser.parse(&row.raw) } else { parser.parse_headers(&row.raw) };
        let content = parsed.as_ref().filter(|_| whole).map(Content::from);
        Self {
            message_id: parsed.as_ref().and_then(|it| it.message_id()).map(str::to_owned),
            subject: parsed.as_ref().and_then(|it| it.subject()).map(str::to_owned),
            id: row.id,
            received_at: row.received_at,
            helo: row.helo,
            mail_from: row.mail_from,
            rcpt_to: row.rcpt_to,
            size: row.size,
            content,
        }
    }
}

impl From<&Message<'_>> for Content {
    fn from(message: &Message<'_>) -> Self {
        let header = |(name, value): (&str, &str)| Header {
            name: name.to_owned(),
            value: value.trim().to_owned(),
        };
        let attached = |part: &mail_parser::MessagePart<'_>| Attached {
            filename: part.attachment_name().map(str::to_owned),
            content_type: part.content_type().map(|it| match it.subtype() {
                Some(subtype) => format!("{}/{subtype}", it.ctype()),
                None => it.ctype().to_owned(),
            }),
            content_id: part.content_id().map(str::to_owned),
            size: part.contents().len(),
        };
        Self {
            headers: message.headers_raw().map(header).collect(),
            text: message.body_text(0).map(Into::into),
            html: message.body_html(0).map(Into::into),
            attachments: message.attachments().map(attached).collect(),
        }
    }
}
