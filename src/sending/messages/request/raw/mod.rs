//! A message that the client has composed itself: the body of `POST /send` as `message/rfc822`.
//!
//! It goes out as it came, except for what a submission server must see to (RFC 6409 §8): every line
//! ends in CRLF; `Bcc`, `Resent-Bcc` and `Return-Path` are taken out; `Date` and `Message-ID` are added
//! where they are missing. Whatever a server on the way might read in another way than we do is
//! refused: `header.rs` has those rules. What JSON says beside the message stands in the query.

mod header;
mod mailboxes;
mod options;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::{NewMessage, Priority, issues::Issues};
use crate::{address::Mailbox, error::Issue};

/// A raw message, and the query it came with.
pub struct RawRequest {
    pub bytes: Bytes,
    pub query: Vec<(String, String)>,
}

/// What is sent in place of a composed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// With CRLF at every line end, and without `Bcc`.
    pub bytes: Vec<u8>,
    /// Its own `Message-ID`, without brackets.
    pub message_id: Option<String>,
    /// It has a `Date`.
    pub dated: bool,
    /// Whoever is named as having sent it for its author.
    pub sender: Option<Mailbox>,
    /// `To` and `Cc` as they stand there: the recipients may be others.
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    /// The header is UTF-8 (RFC 6532).
    pub smtputf8: bool,
    /// There are octets over 127: it takes a server with 8BITMIME (RFC 6152).
    pub eight_bit: bool,
    pub has_attachment: bool,
}

impl RawRequest {
    /// Judges the message and its options: all issues at once, or a message that can be sent.
    pub fn parse(self, now: DateTime<Utc>) -> Result<NewMessage, Vec<Issue>> {
        let issues = &mut Issues::default();
        let options = options::parse(issues, self.query, now);
        let Some(header) = header::read(issues, &self.bytes) else {
            issues.take()?;
            return Err(Vec::new());
        };
        let named = mailboxes::read(issues, &header);
        let recipients = mailboxes::recipients(issues, &options.rcpt, &named);
        issues.take()?;
        Ok(NewMessage {
            to: recipients.to,
            cc: recipients.cc,
            bcc: recipients.bcc,
            from: named.from,
            reply_to: named.reply_to,
            subject: named.subject,
            html: None,
            text: None,
            template: None,
            headers: Vec::new(),
            tags: options.tags,
            metadata: options.metadata,
            attachments: Vec::new(),
            priority: options.priority.unwrap_or(Priority::Normal),
            send_at: options.send_at,
            expires_at: options.lifetime.map(|it| it.end(options.leaves)),
            lifetime: options.lifetime,
            on_unknown: options.on_unknown,
            reject_suppressed: options.reject_suppressed,
            ignored: options.ignored,
            raw: Some(Raw {
                eight_bit: !header.bytes.is_ascii(),
                smtputf8: header.smtputf8,
                message_id: header.message_id,
                dated: header.dated,
                bytes: header.bytes,
                sender: named.sender,
                to: named.to,
                cc: named.cc,
                has_attachment: named.has_attachment,
            }),
        })
    }
}
