use serde_json::json;

use super::tests::{accepted, attachment, parse};

#[test]
fn two_spellings_have_one_fingerprint() {
    let base = json!({
        "to": "Ann <a@bücher.example>", "headers": { "X-A": "1" }, "tags": ["a", "b"],
        "priority": "normal", "expiresAt": "2030-01-01T00:00:00Z", "from": "",
    });
    let other = json!({
        "to": [{ "email": "a@XN--BCHER-KVA.example", "name": " Ann " }], "headers": { "X-A": " 1" },
        "tags": ["b", "a", "a"], "expiresAt": "2030-01-01T01:00:00.000+01:00", "cc": [],
    });
    assert_eq!(accepted(base).fingerprint(), accepted(other).fingerprint());
}

fn template(template: serde_json::Value) -> serde_json::Value {
    json!({ "html": null, "subject": null, "template": template })
}

#[test]
fn a_template_is_known_by_what_is_asked_for() {
    let one = template(json!({ "id": "a", "data": { "x": 1, "y": { "b": 2, "a": null } } }));
    let other =
        template(json!({ "id": "a", "version": null, "data": { "y": { "b": 2 }, "x": 1 } }));
    assert_eq!(accepted(one).fingerprint(), accepted(other).fingerprint());
}

#[test]
fn every_change_of_meaning_changes_the_fingerprint() {
    let file = |name: &str, content: &str| json!([{ "filename": name, "content": content }]);
    let variants = [
        json!({}),
        json!({ "to": "b@example.net" }),
        json!({ "to": "A <a@example.net>" }),
        json!({ "to": "a@example.net,b@example.net" }),
        json!({ "cc": "b@example.net" }),
        json!({ "bcc": "b@example.net" }),
        json!({ "from": "b@example.net" }),
        json!({ "replyTo": "b@example.net" }),
        json!({ "subject": "Hello!" }),
        json!({ "text": "Hello" }),
        json!({ "html": "x" }),
        json!({ "html": null, "text": "x" }),
        json!({ "headers": { "X-A": "b" } }),
        json!({ "headers": { "X-Ab": "" , "X-A": "b" } }),
        json!({ "metadata": { "X-A": "b" } }),
        json!({ "tags": ["X-A", "b"] }),
        json!({ "tags": ["X-Ab"] }),
        json!({ "priority": "bulk" }),
        json!({ "priority": "high" }),
        json!({ "sendAt": "2027-01-15T09:00:00Z" }),
        json!({ "sendAt": "2027-01-15T09:00:01Z" }),
        json!({ "ttl": 60 }),
        json!({ "ttl": 61 }),
        json!({ "onUnknown": "hold" }),
        json!({ "onUnknown": "resend" }),
        json!({ "rejectSuppressed": true }),
        json!({ "rejectSuppressed": false }),
        json!({ "attachments": file("a", "") }),
        json!({ "attachments": file("b", "") }),
        json!({ "attachments": file("a", "aGk=") }),
        attachment(json!({})),
        attachment(json!({ "contentId": "a", "disposition": "attachment" })),
        attachment(json!({ "contentId": "a" })),
        attachment(json!({ "disposition": "inline" })),
        attachment(json!({ "contentType": "text/plain" })),
        template(json!({ "id": "a" })),
        template(json!({ "id": "b" })),
        template(json!({ "id": "a", "version": 1 })),
        template(json!({ "id": "a", "data": { "x": 1 } })),
        template(json!({ "id": "a", "data": { "x": "1" } })),
        template(json!({ "id": "a", "data": { "x": [1] } })),
        template(json!({ "id": "a", "data": { "x": { "y": 1 } } })),
        template(json!({ "id": "a", "data": { "x": ["y", 1] } })),
        template(json!({ "id": "a", "data": { "x": [["y", 1]] } })),
        json!({ "html": null, "template": { "id": "a" }, "subject": "Own" }),
    ];
    let prints: Vec<_> = variants
        .iter()
        .filter_map(|fields| parse(fields.clone()).ok())
        .map(|message| message.fingerprint())
        .collect();
    let different: std::collections::HashSet<_> = prints.iter().collect();
    assert_eq!(prints.len(), variants.len() - 1); // an empty header value is refused
    assert_eq!(different.len(), prints.len());
}
