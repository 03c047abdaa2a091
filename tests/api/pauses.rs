//! What an operator pauses waits, and nothing else does.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, name: &str, port: u16) -> String {
    let new = json!({
        "name": name, "host": "127.0.0.1", "port": port, "secure": false,
        "fromAddress": "app@example.com", "anySender": true, "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201)["id"].as_str().unwrap().to_owned()
}

async fn send(t: &TestApp, from: &str, to: &str) -> String {
    let mut body = message(to);
    body["from"] = json!(from);
    t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned()
}

async fn pause(t: &TestApp, body: Value) -> String {
    let made = t.post("/admin/api/pauses", body).await.is(201);
    format!("/admin/api/pauses/{}", made["id"].as_str().unwrap())
}

async fn resume(t: &TestApp, path: &str) {
    t.call(&t.key, "DELETE", path, None).await.is(204);
}

#[tokio::test]
async fn a_paused_sender_domain_holds_only_its_own_in_every_process() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let relay_ = ScriptedRelay::start(Script::default()).await;
    relay(&t, "one", relay_.port).await;
    let pause = pause(&t, json!({ "scope": "sender_domain", "value": "Held.example" })).await;
    for t in [&t, &other] {
        send(t, "app@held.example", "a@example.net").await;
        let free = send(t, "app@free.example", "a@example.net").await;
        assert_eq!(t.settled(&free).await["outcome"], "sent");
    }
    assert_eq!(relay_.dots(), 2);
    t.counted("select count(*) from jobs where lane = 'held.example' and state = 'ready'", 2).await;
    resume(&other, &pause).await;
    t.counted("select count(*) from messages where outcome = 'sent'", 4).await;
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn a_paused_recipient_domain_holds_its_recipients_and_not_the_others_of_the_message() {
    let t = TestApp::start().await;
    let one = ScriptedRelay::start(Script::default()).await;
    relay(&t, "one", one.port).await;
    let pause =
        pause(&t, json!({ "scope": "recipient_domain", "value": "held.example", "reason": "why" }))
            .await;
    let id = send(&t, "app@example.com", "a@held.example, b@free.example").await;
    t.counted("select count(*) from recipients where state = 'sent'", 1).await;
    t.counted("select count(*) from recipients where reason = 'paused' and state = 'queued'", 1)
        .await;
    let job = t.get(&format!("/jobs/{id}")).await.is(200);
    assert_eq!(job["recipients"][0]["text"], "mail to held.example is paused");
    assert_eq!(job["recipients"][0]["tries"], 0);
    resume(&t, &pause).await;
    assert_eq!(t.settled(&id).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn a_paused_sender_domain_holds_what_needs_no_relay_too() {
    let t = TestApp::start().await;
    let new = json!({ "name": "capture", "scopes": ["send"], "mode": "capture" });
    let key = t.post("/admin/api/api-keys", new).await.is(201);
    let pause = pause(&t, json!({ "scope": "sender_domain", "value": "held.example" })).await;
    let mut body = message("a@example.net");
    body["from"] = json!("app@held.example");
    let sent = t.call(key["plain"].as_str().unwrap(), "POST", "/send", Some(body)).await.is(202);
    let test = send(&t, "app@free.example", "delivered@test.invalid").await;
    t.settled(&test).await;
    t.counted("select count(*) from recipients where reason = 'paused'", 1).await;
    let path = format!("/jobs/{}", sent["id"].as_str().unwrap());
    let job = t.get(&path).await.is(200);
    assert_eq!(job["recipients"][0]["text"], "mail from held.example is paused", "{job:#}");
    resume(&t, &pause).await;
    assert_eq!(t.settled(sent["id"].as_str().unwrap()).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn a_paused_relay_is_passed_over_and_a_pause_of_all_holds_all() {
    let t = TestApp::start().await;
    let (one, two) = (
        ScriptedRelay::start(Script::default()).await,
        ScriptedRelay::start(Script::default()).await,
    );
    let id = relay(&t, "one", one.port).await;
    relay(&t, "two", two.port).await;
    let of_relay = pause(&t, json!({ "scope": "relay", "value": id })).await;
    assert_eq!(
        t.get(&format!("/admin/api/smtp-accounts/{id}")).await.is(200)["live"]["paused"],
        true
    );
    for _ in 0..4 {
        let id = send(&t, "app@example.com", "a@example.net").await;
        assert_eq!(t.settled(&id).await["account"], "two");
    }
    assert_eq!((one.sessions(), two.dots()), (0, 4));
    let of_all = pause(&t, json!({ "scope": "all" })).await;
    assert_eq!(t.get("/admin/api/pauses").await.is(200).as_array().unwrap().len(), 2);
    let waits = send(&t, "app@example.com", "a@example.net").await;
    resume(&t, &of_relay).await;
    let job = t.get(&format!("/jobs/{waits}")).await.is(200);
    assert_eq!((&job["status"], &job["attempts"]), (&json!("pending"), &json!(0)));
    resume(&t, &of_all).await;
    assert_eq!(t.settled(&waits).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn what_cannot_be_paused_is_refused() {
    let t = TestApp::start().await;
    for (body, status) in [
        (json!({ "scope": "all", "value": "x" }), 400),
        (json!({ "scope": "relay", "value": "x" }), 400),
        (json!({ "scope": "relay", "value": "00000000-0000-7000-8000-000000000000" }), 404),
        (json!({ "scope": "sender_domain" }), 400),
        (json!({ "scope": "sender_domain", "value": "a b" }), 400),
        (json!({ "scope": "weather", "value": "x" }), 400),
        (json!({ "scope": "all", "surprise": 1 }), 400),
        (json!({ "scope": "all", "reason": "x".repeat(501) }), 400),
    ] {
        assert_eq!(t.post("/admin/api/pauses", body.clone()).await.status, status, "{body}");
    }
    let path = pause(&t, json!({ "scope": "all", "reason": "first" })).await;
    let again = t.post("/admin/api/pauses", json!({ "scope": "all", "reason": "second" })).await;
    assert_eq!(again.is(201)["reason"], "first", "it is paused already");
    resume(&t, &path).await;
    t.call(&t.key, "DELETE", &path, None).await.is(404);
    t.stop().await;
}
