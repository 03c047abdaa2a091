//! The request as it stands on the wire, and as the API description shows it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    NewMessage, OnUnknown, Priority, attachments, content, headers, issues::Issues, labels,
    options, recipients, template,
};
use crate::error::Issue;

/// One message to send.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SendRequest {
    /// Who the message is for, shown in its header. At most 50 recipients over `to`, `cc` and
    /// `bcc`; an address that stands there twice counts once.
    #[schema(value_type = Recipients, required = true)]
    pub to: Value,
    /// Who gets a copy, shown in the header.
    #[schema(value_type = Option<Recipients>)]
    pub cc: Value,
    /// Who gets a copy unseen: never written into the header.
    #[schema(value_type = Option<Recipients>)]
    pub bcc: Value,
    /// The sender. Absent or empty: the sender that the settings name.
    #[schema(value_type = Option<Address>)]
    pub from: Value,
    /// Where answers go.
    #[schema(value_type = Option<Recipients>)]
    pub reply_to: Value,
    /// One line, without control characters. Required, unless a `template` gives one; then it takes the
    /// place of the template's.
    #[schema(value_type = Option<String>, min_length = 1)]
    pub subject: Value,
    /// The message as HTML. One of `html`, `text` and `template` is required.
    #[schema(value_type = Option<String>, min_length = 1)]
    pub html: Value,
    /// The message as plain text; beside `html`, its alternative.
    #[schema(value_type = Option<String>)]
    pub text: Value,
    /// A stored template, and what to fill it with, in place of `html` and `text`.
    #[schema(value_type = Option<TemplateRequest>)]
    pub template: Value,
    /// More header fields, by name: at most 50, none that addressing, signing or the form of the
    /// message depends on.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    pub headers: Value,
    /// At most 10 words by which to find the message, each 1 to 64 of `A-Z a-z 0-9 _ . : -`.
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    pub tags: Value,
    /// At most 50 values kept with the message and shown in its events; never sent.
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    pub metadata: Value,
    /// At most 100 files, limited together in their decoded size.
    #[schema(value_type = Option<Vec<AttachmentRequest>>, max_items = 100)]
    pub attachments: Value,
    /// The order among waiting messages; `normal` if absent.
    #[schema(value_type = Option<Priority>)]
    pub priority: Value,
    /// When the message is to go out: at most 30 days ahead; a time in the past is now.
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub send_at: Value,
    /// The time after which the message is not sent any more; later than `sendAt`. Not together
    /// with `ttl`.
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub expires_at: Value,
    /// The seconds, from the time of sending on, after which the message is not sent any more: 1 to
    /// 2592000 (30 days).
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_592_000)]
    pub ttl: Value,
    /// What to do when a server took the message but its answer was lost.
    #[schema(value_type = Option<OnUnknown>)]
    pub on_unknown: Value,
    /// Whether a suppressed recipient refuses the request, or is only left out.
    #[schema(value_type = Option<bool>)]
    pub reject_suppressed: Value,

    /// The fields this API does not know.
    #[serde(flatten)]
    #[schema(ignore)]
    pub unknown: Map<String, Value>,
}

impl SendRequest {
    /// Judges the whole request: all issues at once, or a message that can be composed and sent.
    ///
    /// `max_attachment_bytes` limits the attachments' decoded bytes, all of them together.
    pub fn parse(
        self,
        now: DateTime<Utc>,
        max_attachment_bytes: usize,
    ) -> Result<NewMessage, Vec<Issue>> {
        let issues = &mut Issues::default();
        let recipients = recipients::parse(issues, &self.to, &self.cc, &self.bcc);
        let from = recipients::parse_from(issues, &self.from);
        let reply_to = recipients::parse_reply_to(issues, &self.reply_to);
        let filled = !self.template.is_null();
        let subject = content::parse_subject(issues, self.subject, filled);
        let (html, text) = content::parse_bodies(issues, self.html, self.text, filled);
        let template = template::parse(issues, self.template);
        let headers = headers::parse(issues, self.headers);
        let tags = labels::parse_tags(issues, self.tags);
        let metadata = labels::parse_metadata(issues, self.metadata);
        let attachments = attachments::parse(issues, self.attachments, max_attachment_bytes);
        let priority = options::parse_choice(issues, "priority", self.priority);
        let send_at = options::parse_send_at(issues, self.send_at, now);
        let leaves = send_at.map_or(now, |at| at.max(now));
        let lifetime = options::parse_lifetime(issues, self.expires_at, self.ttl, leaves);
        let on_unknown = options::parse_choice(issues, "onUnknown", self.on_unknown);
        let reject_suppressed = issues.boolean("rejectSuppressed", self.reject_suppressed);

        issues.take()?;
        Ok(NewMessage {
            to: recipients.to,
            cc: recipients.cc,
            bcc: recipients.bcc,
            from,
            reply_to,
            subject,
            html,
            text,
            raw: None,
            template,
            headers,
            tags,
            metadata,
            attachments,
            priority: priority.unwrap_or(Priority::Normal),
            send_at,
            expires_at: lifetime.map(|lifetime| lifetime.end(leaves)),
            lifetime,
            on_unknown,
            reject_suppressed,
            ignored: self.unknown.into_iter().map(|(name, _)| name).collect(),
        })
    }
}

/// An address: `a@example.com`, `Name <a@example.com>`, or its parts.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the API description reads it")]
pub(super) enum Address {
    Text(String),
    Parts(AddressParts),
}

/// An address in its parts.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only the API description reads it")]
pub(super) struct AddressParts {
    /// The name that mail programs show.
    name: Option<String>,
    #[schema(format = "email")]
    email: String,
}

/// One or several addresses: a text with commas, one address in its parts, or a list.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the API description reads it")]
pub(super) enum Recipients {
    Text(String),
    One(AddressParts),
    List(Vec<Address>),
}

/// A stored template, and what to fill it with.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only the API description reads it")]
pub(super) struct TemplateRequest {
    /// Its id, or its slug.
    id: String,
    /// The current version if absent.
    #[schema(minimum = 1)]
    version: Option<i32>,
    /// At most 256 KiB. A variable of the template that is not in it refuses the message.
    #[schema(value_type = Object)]
    data: Option<Map<String, Value>>,
}

/// A file that goes with the message.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the API description reads it")]
pub(super) struct AttachmentRequest {
    #[schema(min_length = 1, max_length = 255)]
    filename: String,
    /// The bytes in base64 with padding, without line breaks.
    #[schema(format = "byte")]
    content: String,
    /// `application/octet-stream` if absent.
    #[schema(max_length = 128)]
    content_type: Option<String>,
    /// The name under which `html` shows the file, as in `<img src="cid:logo">`.
    #[schema(max_length = 128)]
    content_id: Option<String>,
    /// `inline` if there is a `contentId`, else `attachment`.
    disposition: Option<super::Disposition>,
}
