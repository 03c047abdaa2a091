use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::Issue;

const MAX: usize = 10 * 1024 * 1024;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// A valid request with these fields over it.
fn with(fields: Value) -> Value {
    let mut body = json!({ "to": "a@example.net", "subject": "Hello", "html": "<p>Hi</p>" });
    let Value::Object(fields) = fields else { panic!("fields") };
    body.as_object_mut().unwrap().extend(fields);
    body
}

pub(super) fn parse(fields: Value) -> Result<NewMessage, Vec<Issue>> {
    serde_json::from_value::<SendRequest>(with(fields)).unwrap().parse(now(), MAX)
}

pub(super) fn accepted(fields: Value) -> NewMessage {
    parse(fields.clone()).unwrap_or_else(|issues| panic!("{fields}: {issues:?}"))
}

fn issues(fields: Value) -> Vec<(String, String)> {
    let issues = parse(fields.clone()).err().unwrap_or_else(|| panic!("accepted: {fields}"));
    issues.into_iter().map(|issue| (issue.path, issue.message)).collect()
}

/// The path of the only issue.
fn path(fields: Value) -> String {
    let all = issues(fields);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].0.clone()
}

pub(super) fn attachment(fields: Value) -> Value {
    let mut item = json!({ "filename": "a.txt", "content": "aGk=" });
    item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "attachments": [{ "filename": "0", "content": "" }, item] })
}

#[test]
fn takes_recipients_in_every_form() {
    let message = accepted(json!({
        "to": "a@example.net, \"B, C\" <b@example.net>",
        "cc": ["c@example.net", { "name": "D 🚀", "email": "d@bücher.example" }],
        "bcc": { "email": "e@example.net" },
        "from": "", "replyTo": ["r@example.net", "s@example.net"],
    }));
    let all: Vec<String> = message.recipients().map(|(_, m)| m.to_string()).collect();
    assert_eq!(
        all,
        [
            "a@example.net",
            "\"B, C\" <b@example.net>",
            "c@example.net",
            "D 🚀 <d@xn--bcher-kva.example>",
            "e@example.net"
        ]
    );
    assert_eq!(message.from, None);
    assert_eq!(message.reply_to.len(), 2);
}

#[test]
fn counts_an_address_once_and_fifty_at_most() {
    let list = |n: usize| (0..n).map(|i| format!("u{i}@example.net")).collect::<Vec<_>>();
    let message = accepted(json!({ "to": list(50), "cc": "U7@Example.net", "bcc": list(3) }));
    assert_eq!((message.to.len(), message.cc.len(), message.bcc.len()), (50, 0, 0));
    let expected = [("to".to_owned(), "too many recipients".to_owned())];
    assert_eq!(issues(json!({ "to": list(51) })), expected);
    assert_eq!(issues(json!({ "to": list(50), "bcc": "x@example.net" })), expected);
}

#[test]
fn says_which_address_is_wrong() {
    let to = "Invalid email address(es) in \"to\"";
    for (fields, path, message) in [
        (json!({ "to": "a@example.net, bad" }), "to", to),
        (json!({ "to": "" }), "to", to),
        (json!({ "to": ["a@example.net", "bad"] }), "to.1", to),
        (json!({ "to": ["a@example.net", { "email": "bad" }] }), "to.1", to),
        (json!({ "to": ["a@example.net,b@example.net"] }), "to.0", to),
        (json!({ "to": ["a@example.net", 7] }), "to.1", "Expected string, received number"),
        (json!({ "to": [null] }), "to.0", "Required"),
        (json!({ "to": [{ "name": "x" }] }), "to.0.email", "Required"),
        (json!({ "to": null }), "to", "Required"),
        (json!({ "to": [] }), "to", "at least one recipient is required"),
        (json!({ "cc": "bad" }), "cc", "Invalid email address(es) in \"cc\""),
        (json!({ "to": "blocked@dest.com(x)" }), "to", to),
        (json!({ "to": "g:blocked@dest.com;" }), "to", to),
        (json!({ "replyTo": "bad" }), "replyTo", "invalid replyTo"),
        (json!({ "replyTo": "" }), "replyTo", "invalid replyTo"),
        (json!({ "from": "a@example.net, b@example.net" }), "from", "invalid from"),
        (json!({ "from": ["a@example.net"] }), "from", "Expected string, received array"),
    ] {
        assert_eq!(issues(fields.clone()), [(path.to_owned(), message.to_owned())], "{fields}");
    }
}

#[test]
fn names_every_issue_at_once() {
    let request: SendRequest = serde_json::from_value(json!({
        "to": 1, "subject": "a\nb", "text": 5, "tags": ["ok", "no no"], "ttl": "1",
        "attachments": [{ "filename": "a/b", "content": "a" }, 3], "priority": "urgent",
        "rejectSuppressed": "yes", "headers": { "Bcc": "x@example.net" },
    }))
    .unwrap();
    let mut paths: Vec<String> =
        request.parse(now(), MAX).unwrap_err().into_iter().map(|issue| issue.path).collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "attachments.0.content",
            "attachments.0.filename",
            "attachments.1",
            "headers.Bcc",
            "priority",
            "rejectSuppressed",
            "subject",
            "tags.1",
            "text",
            "to",
            "ttl"
        ]
    );
}

#[test]
fn no_field_takes_a_line_break() {
    let evil = "A\r\nBcc: x@example.org";
    for (fields, at) in [
        (json!({ "subject": evil }), "subject"),
        (json!({ "subject": "a\u{2028}b" }), "subject"),
        (json!({ "subject": "a\tb" }), "subject"),
        (json!({ "from": { "name": evil, "email": "a@example.com" } }), "from.name"),
        (json!({ "from": format!("{evil} <a@example.com>") }), "from"),
        (json!({ "replyTo": { "name": evil, "email": "a@example.com" } }), "replyTo.name"),
        (json!({ "to": [{ "name": "A\0", "email": "a@example.com" }] }), "to.0.name"),
        (json!({ "to": format!("a@example.com\r\nBcc: x@example.org") }), "to"),
        (json!({ "headers": { "X-A\r\nBcc": "x" } }), "headers.X-A\r\nBcc"),
        (json!({ "headers": { "X-A": evil } }), "headers.X-A"),
        (
            json!({ "headers": { "List-Unsubscribe": "<https://a.example>\r\nX: y" } }),
            "headers.List-Unsubscribe",
        ),
        (attachment(json!({ "filename": evil })), "attachments.1.filename"),
        (
            attachment(json!({ "contentType": format!("text/plain{evil}") })),
            "attachments.1.contentType",
        ),
        (
            attachment(json!({ "contentType": "text/plain; a=\"\r\n\"" })),
            "attachments.1.contentType",
        ),
        (attachment(json!({ "contentId": evil })), "attachments.1.contentId"),
        (json!({ "html": "a\0b" }), "html"),
        (json!({ "text": "a\u{b}b" }), "text"),
    ] {
        assert_eq!(path(fields), at);
    }
}

#[test]
fn bodies_are_html_or_text() {
    assert_eq!(accepted(json!({ "text": "" })).text, None);
    assert_eq!(accepted(json!({ "html": null, "text": "x" })).html, None);
    assert_eq!(accepted(json!({ "html": "a\r\rb\tc\n" })).html.unwrap(), "a\r\rb\tc\n");
    for fields in
        [json!({ "html": null }), json!({ "html": "" }), json!({ "html": null, "text": "" })]
    {
        assert_eq!(path(fields), "html");
    }
    assert_eq!(path(json!({ "subject": "" })), "subject");
    assert_eq!(issues(json!({ "subject": null })), [("subject".into(), "Required".into())]);
    assert_eq!(path(json!({ "html": null, "text": 5 })), "text");
}

#[test]
fn headers_we_own_cannot_be_set() {
    for name in [
        "From",
        "to",
        "CC",
        "bCC",
        "Sender",
        "Reply-To",
        "Subject",
        "Date",
        "Message-ID",
        "MIME-Version",
        "Content-Type",
        "Content-Foo",
        "Return-Path",
        "Received",
        "DKIM-Signature",
        "ARC-Seal",
        "Authentication-Results",
        "Resent-To",
        "Delivered-To",
        "X-Postroom-Id",
        "",
        "X A",
        "X:A",
        "Ü",
    ] {
        let fields = json!({ "headers": { name: "x" } });
        assert_eq!(path(fields), format!("headers.{name}"), "{name}");
    }
    let message = accepted(json!({ "headers": { "x-b": " v ", "X-A": "ü" } }));
    let headers: Vec<_> =
        message.headers.iter().map(|h| (h.name.as_str(), h.value.as_str())).collect();
    assert_eq!(headers, [("X-A", "ü"), ("x-b", "v")]);
    assert_eq!(path(json!({ "headers": { "X-A": "1", "x-a": "2" } })), "headers.x-a");
    assert_eq!(path(json!({ "headers": { "X-A": 1 } })), "headers.X-A");
    assert_eq!(path(json!({ "headers": ["X-A"] })), "headers");
}

#[test]
fn tags_and_metadata_have_limits() {
    let tags: Vec<String> = (0..11).map(|i| i.to_string()).collect();
    assert_eq!(accepted(json!({ "tags": ["b", "a", "b"] })).tags.len(), 2);
    assert_eq!(path(json!({ "tags": tags })), "tags");
    assert_eq!(path(json!({ "tags": ["a".repeat(65)] })), "tags.0");
    assert_eq!(path(json!({ "metadata": { "k": 1 } })), "metadata.k");
    assert_eq!(path(json!({ "metadata": { "k": "🚀".repeat(501) } })), "metadata.k");
    assert_eq!(accepted(json!({ "metadata": { "k": "🚀".repeat(500) } })).metadata.len(), 1);
}

#[test]
fn attachments_are_checked_field_by_field() {
    for (fields, at) in [
        (json!({ "content": "aGk" }), "content"),
        (json!({ "content": "aGl=" }), "content"),
        (json!({ "content": "aG\nk=" }), "content"),
        (json!({ "content": "a-k=" }), "content"),
        (json!({ "content": null }), "content"),
        (json!({ "filename": "" }), "filename"),
        (json!({ "filename": "a".repeat(256) }), "filename"),
        (json!({ "filename": "a\\b" }), "filename"),
        (json!({ "contentType": "text" }), "contentType"),
        (json!({ "contentType": "" }), "contentType"),
        (json!({ "contentType": "multipart/mixed" }), "contentType"),
        (json!({ "contentType": format!("text/{}", "a".repeat(124)) }), "contentType"),
        (json!({ "contentId": "<a>" }), "contentId"),
        (json!({ "disposition": "form-data" }), "disposition"),
    ] {
        assert_eq!(path(attachment(fields)), format!("attachments.1.{at}"));
    }
    let message = accepted(attachment(
        json!({ "contentType": "text/csv; charset=\"utf 8\"", "contentId": "l" }),
    ));
    assert_eq!(message.attachments[1].disposition, Disposition::Inline);
    assert_eq!(&message.attachments[1].content[..], b"hi");
    assert_eq!(issues(json!({ "attachments": [{}] })).len(), 2);
    let same = json!({ "filename": "a", "content": "", "contentId": "c" });
    assert_eq!(path(json!({ "attachments": [same, same] })), "attachments.1.contentId");
}

#[test]
fn attachments_share_one_limit() {
    let item = json!({ "filename": "a", "content": "aaaaaaaaaaaaaaaa" });
    let body = with(json!({ "attachments": [item, item] }));
    let parse =
        |max| serde_json::from_value::<SendRequest>(body.clone()).unwrap().parse(now(), max);
    assert!(parse(24).is_ok());
    assert_eq!(
        parse(23).unwrap_err(),
        [Issue::new("attachments", "attachments exceed 23 bytes total")]
    );
    assert_eq!(parse(0).unwrap_err()[0].message, "attachments exceed 0 MB total");
}

#[test]
fn a_lifetime_ends_in_the_future() {
    assert_eq!(accepted(json!({ "ttl": 60 })).expires_at, Some(now() + TimeDelta::minutes(1)));
    let later = accepted(json!({ "expiresAt": "2030-01-01T01:00:00+01:00" }));
    assert_eq!(later.expires_at.unwrap().to_rfc3339(), "2030-01-01T00:00:00+00:00");
    for ttl in [json!(0), json!(-1), json!(1.5), json!("60"), json!(2_592_001)] {
        assert_eq!(path(json!({ "ttl": ttl })), "ttl");
    }
    for at in
        [json!("2001-01-01T00:00:00Z"), json!("tomorrow"), json!(5), json!(now().to_rfc3339())]
    {
        assert_eq!(path(json!({ "expiresAt": at })), "expiresAt");
    }
    assert_eq!(path(json!({ "ttl": 1, "expiresAt": "2030-01-01T00:00:00Z" })), "ttl");
}

#[test]
fn unknown_fields_are_named_and_change_nothing() {
    let message = accepted(json!({ "colour": "red", "async": true, "priority": null }));
    assert_eq!(message.ignored, ["async", "colour"]);
    assert_eq!(message.priority, Priority::Normal);
    assert_eq!(message.fingerprint(), accepted(json!({})).fingerprint());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ab@.,<>\" ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            Just("email"),
            Just("name"),
            Just("filename"),
            Just("content"),
            Just("X-A")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_in_any_field_is_judged(field in 0_usize..18, value in any_json()) {
        let name = [
            "to", "cc", "bcc", "from", "replyTo", "subject", "html", "text", "headers", "tags", "metadata",
            "attachments", "priority", "expiresAt", "ttl", "onUnknown", "rejectSuppressed", "template",
        ][field];
        match parse(json!({ name: value })) {
            Ok(message) => prop_assert!(!message.to.is_empty()),
            Err(issues) => {
                // A template takes the place of the bodies.
                let mine = |path: &str| path.starts_with(name) || (name == "template" && path == "html");
                prop_assert!(issues.iter().all(|issue| mine(&issue.path)));
            }
        }
    }
}
