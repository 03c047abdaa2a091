//! Keys whose messages are kept instead of sent.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn key(t: &TestApp, name: &str, mode: &str) -> Value {
    let new = json!({ "name": name, "scopes": ["send"], "mode": mode });
    t.post("/admin/api/api-keys", new).await.is(201)
}

#[tokio::test]
async fn what_a_capturing_key_sends_is_kept_and_not_sent() {
    let t = TestApp::start_with(&[("POSTROOM_SANDBOX", "false")]).await;
    let relay = ScriptedRelay::start(Script::default()).await;
    let new = json!({
        "name": "real", "host": "127.0.0.1", "port": relay.port, "secure": false, "fromAddress": "app@example.com",
        "domain": "example.com", "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    let capture = key(&t, "capture", "capture").await;
    let capture = capture["plain"].as_str().unwrap();
    let other = key(&t, "other", "capture").await;
    assert_eq!(t.call(capture, "GET", "/me/key", None).await.is(200)["mode"], "capture");

    let mut body = message("a@example.net, b@example.net, bounced@test.invalid");
    body["bcc"] = json!("hidden@example.net");
    let planned = t.call(capture, "POST", "/send?dryRun", Some(body.clone())).await.is(200);
    assert_eq!(planned["recipients"][0]["by"], "capture");
    assert_eq!(planned["relays"], json!([]));
    let sent = t.call(capture, "POST", "/send", Some(body)).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(
        (&job["outcome"], &job["recipients"][0]["account"]),
        (&json!("sent"), &json!("capture"))
    );
    assert_eq!(job["recipients"][2]["state"], "bounced");
    assert_eq!(relay.sessions(), 0);

    let kept = t.call(capture, "GET", "/sandbox/messages", None).await.is(200);
    assert_eq!(kept.as_array().unwrap().len(), 1);
    assert_eq!(kept[0]["rcptTo"], json!(["a@example.net", "b@example.net", "hidden@example.net"]));
    let path = format!("/sandbox/messages/{}", kept[0]["id"].as_str().unwrap());
    let whole = t.call(capture, "GET", &path, None).await.is(200);
    assert_eq!(format!("<{}>", whole["messageId"].as_str().unwrap()), job["messageId"]);
    assert!(whole["content"]["text"].as_str().unwrap().contains("there"));
    t.get(&path).await.is(200);
    let other = other["plain"].as_str().unwrap();
    t.call(other, "GET", &path, None).await.is(404);
    assert_eq!(t.call(other, "GET", "/sandbox/messages", None).await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn the_mode_of_a_key_is_shown_changed_and_judged() {
    let t = TestApp::start().await;
    let made = key(&t, "live", "live").await;
    let path = format!("/admin/api/api-keys/{}", made["id"].as_str().unwrap());
    let plain = made["plain"].as_str().unwrap();
    let send = async |mode: &str| {
        t.call(&t.key, "PATCH", &path, Some(json!({ "mode": mode }))).await.is(200);
        let sent = t.call(plain, "POST", "/send", Some(message("a@example.net"))).await.is(202);
        t.settled(sent["id"].as_str().unwrap()).await["account"].clone()
    };
    assert_eq!(send("capture").await, "capture");
    assert_eq!(send("live").await, "sandbox");
    for bad in [json!({ "mode": "dry" }), json!({ "mode": null })] {
        t.call(&t.key, "PATCH", &path, Some(bad)).await.is(400);
    }
    let new = json!({ "name": "x", "scopes": ["send"], "mode": "dry" });
    t.post("/admin/api/api-keys", new).await.is(400);
    let listed = t.get("/admin/api/api-keys").await.is(200);
    assert!(listed.as_array().unwrap().iter().all(|it| it["mode"] == "live"), "{listed:#}");
    t.stop().await;
}

#[tokio::test]
async fn a_capturing_key_needs_no_relay_and_keeps_its_bindings() {
    let t = TestApp::start_with(&[("POSTROOM_SANDBOX", "false")]).await;
    let new = json!({ "name": "c", "scopes": ["send"], "mode": "capture", "senderDomains": ["example.com"] });
    let made = t.post("/admin/api/api-keys", new).await.is(201);
    let plain = made["plain"].as_str().unwrap();
    let mut body = message("a@example.net");
    let sent = t.call(plain, "POST", "/send", Some(body.clone())).await.is(202);
    assert_eq!(t.settled(sent["id"].as_str().unwrap()).await["outcome"], "sent");
    body["from"] = json!("app@example.org");
    t.call(plain, "POST", "/send", Some(body)).await.is(403);
    t.stop().await;
}
