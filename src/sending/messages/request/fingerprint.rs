//! The hash by which a repeated request is recognised.
//!
//! Each value goes in with its length before it and each list with its count, so no two different
//! requests run into the same bytes. The first value names this encoding: a change of it must
//! change the name, or a client's retry across an upgrade would look like another request.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Attachment, Lifetime, NewMessage, OnUnknown, Priority};
use crate::{address::Mailbox, sending::templates::TemplateUse};

const ENCODING: &str = "postroom send 1";

pub(super) fn of(message: &NewMessage) -> [u8; 32] {
    // No `..`: a new field has to be placed here, or among those that do not count.
    let NewMessage {
        to,
        cc,
        bcc,
        from,
        reply_to,
        subject,
        html,
        text,
        raw,
        template,
        headers,
        tags,
        metadata,
        attachments,
        priority,
        send_at,
        lifetime,
        expires_at: _,
        on_unknown,
        reject_suppressed,
        ignored: _,
    } = message;

    let mut hash = Writer(Sha256::new());
    hash.text(ENCODING);
    hash.list(to, Writer::mailbox);
    hash.list(cc, Writer::mailbox);
    hash.list(bcc, Writer::mailbox);
    hash.list(from, Writer::mailbox);
    hash.list(reply_to, Writer::mailbox);
    hash.text(subject);
    hash.list(html, |hash, html| hash.text(html));
    hash.list(text, |hash, text| hash.text(text));
    hash.list(headers, |hash, header| {
        hash.text(&header.name);
        hash.text(&header.value);
    });
    hash.list(tags, |hash, tag| hash.text(tag));
    hash.list(metadata, |hash, (key, value)| {
        hash.text(key);
        hash.text(value);
    });
    hash.list(attachments, Writer::attachment);
    hash.text(match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Bulk => "bulk",
    });
    hash.list(lifetime, |hash, lifetime| match lifetime {
        Lifetime::Until(end) => hash.text(&format!("until {}", end.timestamp_micros())),
        Lifetime::Seconds(n) => hash.text(&format!("seconds {n}")),
    });
    hash.list(on_unknown, |hash, policy| {
        hash.text(match policy {
            OnUnknown::Hold => "hold",
            OnUnknown::Resend => "resend",
        });
    });
    hash.list(reject_suppressed, |hash, yes| hash.text(if *yes { "yes" } else { "no" }));
    // What came later stands at the end under its name, and only where it is there: so a request
    // without it keeps its hash across an upgrade.
    if let Some(at) = send_at {
        hash.text("sendAt");
        hash.text(&at.timestamp_micros().to_string());
    }
    if let Some(TemplateUse { id, version, data }) = template {
        hash.text("template");
        hash.text(id);
        hash.list(version, |hash, version| hash.text(&version.to_string()));
        hash.object(data);
    }
    if let Some(raw) = raw {
        hash.text("raw");
        hash.bytes(&raw.bytes);
    }
    hash.0.finalize().into()
}

struct Writer(Sha256);

impl Writer {
    fn count(&mut self, n: usize) {
        self.0.update((n as u64).to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Also for an optional value, which is a list of none or one.
    fn list<I: IntoIterator<IntoIter: ExactSizeIterator>>(
        &mut self,
        items: I,
        mut each: impl FnMut(&mut Self, I::Item),
    ) {
        let items = items.into_iter();
        self.count(items.len());
        items.for_each(|item| each(self, item));
    }

    fn mailbox(&mut self, mailbox: &Mailbox) {
        self.list(mailbox.name().as_slice(), |hash, name| hash.text(name));
        self.text(mailbox.address().as_str());
    }

    /// Sorted by its keys, whatever order the client had.
    fn object(&mut self, fields: &Map<String, Value>) {
        let fields: BTreeMap<_, _> = fields.iter().collect();
        self.list(fields, |hash, (key, value)| {
            hash.text(key);
            hash.json(value);
        });
    }

    fn json(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                self.text("object");
                self.object(fields);
            }
            Value::Array(items) => {
                self.text("array");
                self.list(items, Self::json);
            }
            // As JSON writes them, none is like another.
            leaf => self.text(&leaf.to_string()),
        }
    }

    fn attachment(&mut self, attachment: &Attachment) {
        self.text(&attachment.filename);
        self.text(&attachment.content_type);
        self.bytes(&attachment.content);
        self.list(&attachment.content_id, |hash, id| hash.text(id));
        self.text(attachment.disposition.as_str());
    }
}
