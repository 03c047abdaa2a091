//! What a request would come to.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::support::{TestApp, message};

#[tokio::test]
async fn a_dry_run_says_what_would_be_sent_and_keeps_nothing() {
    let t = TestApp::start().await;
    let new = json!({
        "name": "own", "host": "127.0.0.1", "port": 2525, "secure": false, "fromAddress": "app@example.com",
        "domain": "example.com", "priority": 1,
    });
    let relay = t.post("/admin/api/smtp-accounts", new).await.is(201);
    let mut body = message("a@example.net");
    body["bcc"] = json!("hidden@example.org");
    body["colour"] = json!("blue");
    for query in ["?dryRun", "?dryRun=true", "?dryRun=1", "?dryRun=true&wait=false"] {
        let planned = t.post(&format!("/send{query}"), body.clone()).await.is(200);
        assert_eq!(planned["dryRun"], json!(true));
        assert_eq!(planned["relays"], json!([{ "id": relay["id"], "name": "own" }]));
        assert_eq!(planned["envelope"]["sender"], "app@example.com");
        assert_eq!(
            planned["envelope"]["recipients"],
            json!(["a@example.net", "hidden@example.org"])
        );
        assert_eq!(planned["ignored"], json!(["colour"]));
        let raw = STANDARD.decode(planned["raw"].as_str().unwrap()).unwrap();
        assert_eq!(planned["size"], raw.len());
        let raw = String::from_utf8(raw).unwrap();
        assert!(raw.contains(planned["messageId"].as_str().unwrap()), "{raw}");
        assert!(raw.contains("To: a@example.net\r\n") && !raw.contains("hidden@"), "{raw}");
    }
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn a_dry_run_refuses_what_a_real_one_would() {
    let t = TestApp::start().await;
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'gone@example.net', 'hard bounce')")
        .execute(&t.db)
        .await
        .unwrap();
    let refused = t.post("/send?dryRun", message("gone@example.net")).await.is(422);
    assert_eq!(refused["suppressed"][0]["reason"], "hard bounce");
    let mut both = message("gone@example.net, a@example.net");
    both["rejectSuppressed"] = json!(false);
    let planned = t.post("/send?dryRun", both).await.is(200);
    let recipient = |state: &str, reason: serde_json::Value, address: &str| {
        let by = reason.is_null().then_some("relay");
        json!({ "address": address, "field": "to", "state": state, "reason": reason, "by": by })
    };
    assert_eq!(
        planned["recipients"],
        json!([
            recipient("suppressed", json!("hard bounce"), "gone@example.net"),
            recipient("queued", json!(null), "a@example.net"),
        ])
    );
    assert_eq!(planned["envelope"]["recipients"], json!(["a@example.net"]));
    t.post("/send?dryRun", message("nonsense")).await.is(400);
    let new = json!({ "name": "bound", "scopes": ["send"], "senderDomains": ["example.org"] });
    let bound = t.post("/admin/api/api-keys", new).await.is(201);
    let bound = bound["plain"].as_str().unwrap();
    let body = Some(message("a@example.net"));
    t.call(bound, "POST", "/send?dryRun", body).await.is(403);
    // What is no clear yes or no must not send.
    for query in ["?dryRun=yes", "?dryRun&wait", "?dryRun=true&wait=1"] {
        t.post(&format!("/send{query}"), message("a@example.net")).await.is(400);
    }
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.post("/send?dryRun=false", message("a@example.net")).await.is(202);
    t.stop().await;
}

#[tokio::test]
async fn a_key_learns_what_it_may_do() {
    let t = TestApp::start().await;
    let new = json!({
        "name": "app", "scopes": ["send"], "senderDomains": ["example.com"], "networks": ["127.0.0.0/8"],
        "onUnknown": "resend", "expiresAt": "2999-01-01T00:00:00Z",
    });
    let made = t.post("/admin/api/api-keys", new).await.is(201);
    let mine = t.call(made["plain"].as_str().unwrap(), "GET", "/me/key", None).await.is(200);
    for (field, value) in [
        ("id", made["id"].clone()),
        ("name", json!("app")),
        ("prefix", made["prefix"].clone()),
        ("scopes", json!(["send"])),
        ("senderDomains", json!(["example.com"])),
        ("senderAddresses", json!(null)),
        ("networks", json!(["127.0.0.0/8"])),
        ("onUnknown", json!("resend")),
        ("expiresAt", json!("2999-01-01T00:00:00Z")),
    ] {
        assert_eq!(mine[field], value, "{field}");
    }
    assert!(!mine.to_string().contains(made["plain"].as_str().unwrap()));
    t.stop().await;
}
