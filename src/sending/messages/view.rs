//! Messages as the API shows them: the contract's job, and what it lacked.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::store::read::{Attempt, Recipient, Row, Said};

/// A message; the contract's name for it is job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: Uuid,
    /// `pending`: work left. `processing`: a process works on it, or nothing is known of some
    /// recipient. `done`: all settled, at least one accepted. `dead`: all settled, none accepted.
    pub status: &'static str,
    /// `sent`, `partial`, `failed`, `unknown`, `suppressed`, `cancelled`, `expired`; null while open.
    pub outcome: Option<String>,
    /// Conversations with relays that have begun.
    pub attempts: i32,
    /// As many as the schedule makes within the retry window.
    pub max_attempts: u32,
    /// The relay asked last.
    pub account: Option<String>,
    /// With its angle brackets.
    pub message_id: String,
    pub error: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub completed_at: Option<DateTime<Utc>>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When its content was erased for one of its recipients: it is never sent again.
    pub erased_at: Option<DateTime<Utc>>,
    pub api_key_id: Option<Uuid>,
    /// Copies that were sent again because nothing was known of the one before.
    pub resends: i32,
    /// How often somebody asked for it to be tried again.
    pub retries: i32,
    pub size: i64,
    pub tags: Vec<String>,
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// When it is to go out, as asked for; null: at once.
    pub send_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub accepted: i32,
    pub recipient_count: i32,
    /// `to`, `subject`, `from`, `replyTo`, `cc`; with `?include=content` also `html`, `text`,
    /// `attachments`.
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
    /// Only where one message is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients: Option<Vec<RecipientView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<AttemptView>>,
}

/// A recipient, and the last words about it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipientView {
    pub address: String,
    /// `to`, `cc` or `bcc`.
    pub field: String,
    pub state: String,
    pub tries: i32,
    pub account: Option<String>,
    pub code: Option<i16>,
    pub enhanced_code: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub remote_queue_id: Option<String>,
    pub next_attempt_at: Option<DateTime<Utc>>,
    pub settled_at: Option<DateTime<Utc>>,
}

/// One SMTP transaction, or why it could not begin.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    pub id: Uuid,
    pub account: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub phase: String,
    pub result: Option<String>,
    pub code: Option<i16>,
    pub enhanced_code: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    pub peer: Option<String>,
    pub tls: Option<String>,
    pub recipients: Vec<SaidView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaidView {
    pub address: String,
    pub result: String,
    pub code: Option<i16>,
    pub enhanced_code: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
}

impl Job {
    pub fn new(row: Row, max_attempts: u32) -> Self {
        let status = match (row.settled_at, row.n_accepted) {
            (Some(_), 0) => "dead",
            (Some(_), _) => "done",
            (None, _) if row.leased || row.n_open == 0 => "processing",
            (None, _) => "pending",
        };
        let unknown = row.n_open == 0 && row.n_unknown > 0;
        let outcome = if unknown { Some("unknown".to_owned()) } else { row.outcome };
        let mut payload = Map::new();
        payload.insert("to".to_owned(), json!(row.to_header));
        payload.insert("subject".to_owned(), json!(row.subject));
        payload.insert("from".to_owned(), json!(row.from_header));
        if let Some(reply_to) = row.reply_to {
            payload.insert("replyTo".to_owned(), json!(reply_to));
        }
        if !row.cc_header.is_empty() {
            payload.insert("cc".to_owned(), json!(row.cc_header));
        }
        Self {
            id: row.message_id,
            status,
            error: row.last_error.filter(|_| outcome.as_deref() != Some("sent")),
            outcome,
            attempts: row.n_attempts,
            max_attempts,
            account: row.last_relay,
            message_id: format!("<{}>", row.internet_id),
            created_at: row.created_at,
            started_at: row.started_at,
            completed_at: row.settled_at,
            next_attempt_at: row.next_at,
            erased_at: row.erased_at,
            api_key_id: row.api_key_id,
            resends: row.resends,
            retries: row.retries,
            size: row.size,
            tags: row.tags,
            metadata: row.metadata,
            send_at: row.send_at,
            expires_at: row.expires_at,
            accepted: row.n_accepted,
            recipient_count: row.n_recipients,
            payload,
            recipients: None,
            history: None,
        }
    }

    pub fn with_details(
        mut self,
        to: Vec<Recipient>,
        attempts: Vec<Attempt>,
        said: Vec<Said>,
    ) -> Self {
        self.recipients = Some(to.into_iter().map(RecipientView::from).collect());
        let mut history: Vec<AttemptView> = attempts.into_iter().map(AttemptView::from).collect();
        for it in said {
            let attempt = history.iter_mut().find(|attempt| attempt.id == it.attempt_id);
            if let Some(attempt) = attempt {
                attempt.recipients.push(SaidView::from(it));
            }
        }
        self.history = Some(history);
        self
    }

    /// Adds what the composed bytes hold.
    pub fn with_content(mut self, bytes: &[u8]) -> Self {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        use mail_parser::MimeHeaders as _;
        let Some(message) = mail_parser::MessageParser::default().parse(bytes) else { return self };
        let texts = |ids: &[u32]| ids.iter().filter_map(|id| message.part(*id)).next();
        if let Some(mail_parser::PartType::Html(html)) =
            texts(&message.html_body).map(|it| &it.body)
        {
            self.payload.insert("html".to_owned(), json!(html));
        }
        if let Some(mail_parser::PartType::Text(text)) =
            texts(&message.text_body).map(|it| &it.body)
        {
            self.payload.insert("text".to_owned(), json!(text));
        }
        let attachments: Vec<Value> = message
            .attachments()
            .map(|it| {
                let kind = it.content_type().map(|kind| {
                    format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream"))
                });
                json!({
                    "filename": it.attachment_name(), "contentType": kind, "contentId": it.content_id(),
                    "content": STANDARD.encode(it.contents()),
                })
            })
            .collect();
        if !attachments.is_empty() {
            self.payload.insert("attachments".to_owned(), json!(attachments));
        }
        self
    }
}

impl From<Recipient> for RecipientView {
    fn from(it: Recipient) -> Self {
        Self {
            address: it.address,
            field: it.field,
            state: it.state,
            tries: it.tries,
            account: it.relay,
            code: it.code,
            enhanced_code: it.enhanced,
            reason: it.reason,
            text: it.text,
            remote_queue_id: it.remote_queue_id,
            next_attempt_at: it.next_at,
            settled_at: it.settled_at,
        }
    }
}

impl From<Attempt> for AttemptView {
    fn from(it: Attempt) -> Self {
        Self {
            id: it.attempt_id,
            account: it.relay_name,
            started_at: it.started_at,
            ended_at: it.ended_at,
            phase: it.phase,
            result: it.result,
            code: it.code,
            enhanced_code: it.enhanced,
            reason: it.reason,
            text: it.text,
            peer: it.peer,
            tls: it.tls,
            recipients: Vec::new(),
        }
    }
}

impl From<Said> for SaidView {
    fn from(it: Said) -> Self {
        Self {
            address: it.address,
            result: it.result,
            code: it.code,
            enhanced_code: it.enhanced,
            reason: it.reason,
            text: it.text,
        }
    }
}
