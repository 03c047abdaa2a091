//! Header fields that the client adds.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    content::is_line_control,
    issues::{Issues, utf16_len},
};

const MAX_HEADERS: usize = 50;

/// Leaves room for the colon, the space and a fold in a line of 78.
const MAX_NAME: usize = 76;

/// Eight full lines of 998 (RFC 5322 §2.1.1).
const MAX_VALUE: usize = 8 * 998;

/// Fields that this server writes, that a signer or a receiver on the way writes, or that would
/// address the message a second time. Lower case.
const OWNED: &[&str] = &[
    "apparently-to",
    "authentication-results",
    "bcc",
    "cc",
    "date",
    "delivered-to",
    "dkim-signature",
    "domainkey-signature",
    "envelope-to",
    "from",
    "message-id",
    "mime-version",
    "received",
    "received-spf",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
    "x-original-to",
];

const OWNED_PREFIXES: &[&str] = &["arc-", "content-", "resent-", "x-postroom-"];

/// A field the client adds to the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomHeader {
    /// A token, spelt as the client spells it.
    pub name: String,
    /// One line without control characters and without spaces at its ends.
    pub value: String,
}

/// Reads the fields in the order of their names, so that the same request always gives the same
/// message.
pub(super) fn parse(issues: &mut Issues, value: Value) -> Vec<CustomHeader> {
    let fields = issues.object("headers", value);
    if fields.len() > MAX_HEADERS {
        issues.add("headers", format!("more than {MAX_HEADERS} headers"));
        return Vec::new();
    }
    let mut headers = BTreeMap::new();
    for (name, value) in fields {
        let path = format!("headers.{name}");
        if let Some(fault) = fault_of_name(&name) {
            issues.add(&path, fault);
        }
        let Some(value) = issues.required_string(&path, value) else { continue };
        if value.contains(is_line_control) {
            issues.add(&path, "must not contain line breaks or control characters");
        }
        if utf16_len(&value) > MAX_VALUE {
            issues.add(&path, format!("longer than {MAX_VALUE} characters"));
        }
        let value = value.trim_matches(' ').to_owned();
        if value.is_empty() {
            issues.add(&path, "must not be empty");
        }
        if headers.insert(name.to_ascii_lowercase(), CustomHeader { name, value }).is_some() {
            issues.add(&path, "given twice");
        }
    }
    headers.into_values().collect()
}

/// A name is a token: printable ASCII without space and colon by RFC 5322 §2.2, and narrower here,
/// without the separators of RFC 9110 §5.6.2, which no registered field has.
fn fault_of_name(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Some("not a header name");
    }
    if name.len() > MAX_NAME {
        return Some("a header name longer than 76 characters");
    }
    let owned = OWNED.contains(&lower.as_str())
        || OWNED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix));
    owned.then_some("this header cannot be set")
}

pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
