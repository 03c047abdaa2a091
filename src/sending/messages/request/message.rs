//! A message that has passed every rule.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{Attachment, CustomHeader, Lifetime, OnUnknown, Priority, Raw};
use crate::{address::Mailbox, sending::templates::TemplateUse};

/// What a client asked to send, parsed. Nothing in it can break a header or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Never empty, unless the message is raw. No address stands twice in `to`, `cc` and `bcc`
    /// together, and somebody stands there.
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    /// As asked for; the sender policy resolves an absent one.
    pub from: Option<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    /// Empty only where a template that is still to be filled gives it.
    pub subject: String,
    /// As given, line ends included. At least one of `html` and `text` is there, unless a template is
    /// still to be filled; neither is empty.
    pub html: Option<String>,
    pub text: Option<String>,
    /// What was composed already; then there is neither `html`, `text`, `template`, `headers` nor
    /// `attachments`.
    pub raw: Option<Raw>,
    /// As asked for.
    pub template: Option<TemplateUse>,
    /// In the order of their names, each name once.
    pub headers: Vec<CustomHeader>,
    pub tags: BTreeSet<String>,
    pub metadata: BTreeMap<String, String>,
    pub attachments: Vec<Attachment>,
    pub priority: Priority,
    /// When it is to go out; absent: at once.
    pub send_at: Option<DateTime<Utc>>,
    /// In the words of the request; `expires_at` is what it comes to.
    pub lifetime: Option<Lifetime>,
    pub expires_at: Option<DateTime<Utc>>,
    pub on_unknown: Option<OnUnknown>,
    /// Absent where the request leaves it to the route.
    pub reject_suppressed: Option<bool>,
    /// The names of top-level fields that were there and mean nothing.
    pub ignored: Vec<String>,
}

/// Where a recipient stands in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientKind {
    To,
    Cc,
    Bcc,
}

impl NewMessage {
    /// Everyone the message goes to, each address once.
    pub fn recipients(&self) -> impl Iterator<Item = (RecipientKind, &Mailbox)> {
        let to = self.to.iter().map(|mailbox| (RecipientKind::To, mailbox));
        let cc = self.cc.iter().map(|mailbox| (RecipientKind::Cc, mailbox));
        let bcc = self.bcc.iter().map(|mailbox| (RecipientKind::Bcc, mailbox));
        to.chain(cc).chain(bcc)
    }

    /// Its own `Message-ID`, without brackets; one that we compose is given ours.
    pub fn message_id(&self) -> Option<String> {
        self.raw.as_ref()?.message_id.clone()
    }

    /// What its header shows as `To` and `Cc`.
    pub fn shown(&self) -> (&[Mailbox], &[Mailbox]) {
        self.raw.as_ref().map_or((&self.to, &self.cc), |raw| (&raw.to, &raw.cc))
    }

    pub fn has_attachment(&self) -> bool {
        self.raw.as_ref().map_or(!self.attachments.is_empty(), |raw| raw.has_attachment)
    }

    /// SHA-256 over what the request means: two spellings of one request have one fingerprint, and
    /// any change of meaning gives another. Names of ignored fields and the current time do not
    /// enter it, nor what a template says now: to be asked of a message before it is filled.
    pub fn fingerprint(&self) -> [u8; 32] {
        super::fingerprint::of(self)
    }
}
