//! Files that go with the message.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    headers::is_token,
    issues::{Issues, utf16_len},
    options::parse_choice,
};
use crate::address::is_invisible_control;

const MAX_ATTACHMENTS: usize = 100;
const MAX_FILENAME: usize = 255;
const MAX_CONTENT_TYPE: usize = 128;
const MAX_CONTENT_ID: usize = 128;

/// A file that goes with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Without slashes, backslashes and control characters.
    pub filename: String,
    /// `type/subtype` with parameters (RFC 2045 §5.1), never a multipart.
    pub content_type: String,
    pub content: Bytes,
    /// Without its angle brackets (RFC 2392).
    pub content_id: Option<String>,
    pub disposition: Disposition,
}

/// Whether the file is shown within the message or beside it (RFC 2183).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    Attachment,
    Inline,
}

impl Disposition {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attachment => "attachment",
            Self::Inline => "inline",
        }
    }
}

pub(super) fn parse(issues: &mut Issues, value: Value, max_bytes: usize) -> Vec<Attachment> {
    let items = issues.array("attachments", value);
    if items.len() > MAX_ATTACHMENTS {
        issues.add("attachments", format!("more than {MAX_ATTACHMENTS} attachments"));
        return Vec::new();
    }
    let attachments: Vec<Attachment> = (items.into_iter().enumerate())
        .filter_map(|(at, item)| parse_one(issues, &format!("attachments.{at}"), item))
        .collect();
    if attachments.iter().map(|a| a.content.len()).sum::<usize>() > max_bytes {
        issues.add("attachments", format!("attachments exceed {} total", in_words(max_bytes)));
    }
    let mut seen = HashSet::new();
    for (at, attachment) in attachments.iter().enumerate() {
        if attachment.content_id.as_ref().is_some_and(|id| !seen.insert(id)) {
            issues.add(format!("attachments.{at}.contentId"), "given twice");
        }
    }
    attachments
}

fn parse_one(issues: &mut Issues, path: &str, value: Value) -> Option<Attachment> {
    let Value::Object(mut fields) = value else {
        issues.wrong_type(path, "object", &value);
        return None;
    };
    let mut field =
        |name: &str| (format!("{path}.{name}"), fields.remove(name).unwrap_or_default());

    let (at, value) = field("filename");
    let filename = issues.required_string(&at, value);
    if let Some(name) = &filename {
        check_filename(issues, &at, name);
    }
    let (at, value) = field("content");
    let content = issues.required_string(&at, value).unwrap_or_default();
    // Strict: padded, no white space, no stray bits after the last byte (RFC 4648 §3.5).
    let content = BASE64_STANDARD.decode(content).unwrap_or_else(|_| {
        issues.add(at, "must be base64 with padding and without line breaks");
        Vec::new()
    });
    let (at, value) = field("contentType");
    let content_type = issues.string(&at, value);
    if content_type.as_ref().is_some_and(|text| !is_content_type(text)) {
        issues.add(&at, "must be a media type as in text/csv; charset=utf-8");
    }
    let (at, value) = field("contentId");
    let content_id = issues.string(&at, value);
    if content_id.as_ref().is_some_and(|text| !is_content_id(text)) {
        issues.add(&at, "must be 1 to 128 ASCII characters without <, > and spaces");
    }
    let (at, value) = field("disposition");
    let disposition = parse_choice(issues, &at, value);

    let usual = if content_id.is_some() { Disposition::Inline } else { Disposition::Attachment };
    Some(Attachment {
        filename: filename.unwrap_or_default(),
        content_type: content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        content: content.into(),
        content_id,
        disposition: disposition.unwrap_or(usual),
    })
}

fn check_filename(issues: &mut Issues, path: &str, name: &str) {
    if !(1..=MAX_FILENAME).contains(&utf16_len(name)) {
        issues.add(path, format!("must be 1 to {MAX_FILENAME} characters"));
    }
    if name.contains(|c| is_invisible_control(c) || c == '/' || c == '\\') {
        issues.add(path, "must not contain slashes or control characters");
    }
}

/// `type "/" subtype *(";" parameter)` of RFC 2045 §5.1, in printable ASCII.
fn is_content_type(text: &str) -> bool {
    let mut pieces = text.split(';');
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_token);
    let full = pieces.next().and_then(|full| full.trim_end_matches(' ').split_once('/'));
    let is_parameter = |text: &str| {
        let Some((name, value)) = text.trim_matches(' ').split_once('=') else { return false };
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let plain = |c: u8| (b' '..=b'~').contains(&c) && c != b'"' && c != b'\\';
        is_name(name) && inner.map_or(is_name(value), |inner| inner.bytes().all(plain))
    };
    text.len() <= MAX_CONTENT_TYPE
        && full.is_some_and(|(kind, subkind)| {
            is_name(kind) && is_name(subkind) && !kind.eq_ignore_ascii_case("multipart")
        })
        && pieces.all(is_parameter)
}

fn is_content_id(text: &str) -> bool {
    let plain = |c: u8| (b'!'..=b'~').contains(&c) && c != b'<' && c != b'>';
    (1..=MAX_CONTENT_ID).contains(&text.len()) && text.bytes().all(plain)
}

fn in_words(bytes: usize) -> String {
    const MB: usize = 1024 * 1024;
    if bytes.is_multiple_of(MB) { format!("{} MB", bytes / MB) } else { format!("{bytes} bytes") }
}
