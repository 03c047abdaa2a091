//! What the client keeps with a message and never sends: tags and metadata.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::issues::{Issues, utf16_len};

const MAX_TAGS: usize = 10;
const MAX_TAG: usize = 64;
const MAX_METADATA: usize = 50;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 1_000;

/// A set: the order and repetitions mean nothing.
pub(super) fn parse_tags(issues: &mut Issues, value: Value) -> BTreeSet<String> {
    let items = issues.array("tags", value);
    if items.len() > MAX_TAGS {
        issues.add("tags", format!("more than {MAX_TAGS} tags"));
        return BTreeSet::new();
    }
    let mut tags = BTreeSet::new();
    for (at, item) in items.into_iter().enumerate() {
        let path = format!("tags.{at}");
        let Some(tag) = issues.required_string(&path, item) else { continue };
        if (1..=MAX_TAG).contains(&tag.len()) && tag.bytes().all(is_tag) {
            tags.insert(tag);
        } else {
            issues.add(&path, "a tag is 1 to 64 of A-Z a-z 0-9 _ . : -");
        }
    }
    tags
}

fn is_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)
}

pub(super) fn parse_metadata(issues: &mut Issues, value: Value) -> BTreeMap<String, String> {
    let fields = issues.object("metadata", value);
    if fields.len() > MAX_METADATA {
        issues.add("metadata", format!("more than {MAX_METADATA} values"));
        return BTreeMap::new();
    }
    let mut metadata = BTreeMap::new();
    for (key, value) in fields {
        let path = format!("metadata.{key}");
        if key.is_empty() || utf16_len(&key) > MAX_KEY {
            issues.add(&path, format!("a key is 1 to {MAX_KEY} characters"));
        }
        let Some(value) = issues.required_string(&path, value) else { continue };
        if utf16_len(&value) > MAX_VALUE {
            issues.add(&path, format!("longer than {MAX_VALUE} characters"));
        }
        // Postgres keeps no NUL in text.
        if key.contains('\0') || value.contains('\0') {
            issues.add(&path, "must not contain NUL");
        }
        metadata.insert(key, value);
    }
    metadata
}
