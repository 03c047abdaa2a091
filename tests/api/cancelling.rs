//! Cancelling: what waits ends, what is sent stays, and nothing is both.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, relay: &ScriptedRelay) {
    let new = json!({
        "name": "relay", "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "domain": "example.com", "priority": 1, "maxConnections": 20,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

async fn kinds(t: &TestApp, id: &str) -> Vec<String> {
    sqlx::query_scalar("select kind from events where subject_id = $1::uuid order by event_id")
        .bind(id)
        .fetch_all(&t.db)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_scheduled_message_is_cancelled_and_never_leaves() {
    let t = TestApp::start().await;
    let mut body = message("a@example.net, b@example.net");
    #[expect(clippy::disallowed_methods, reason = "a test may look at the clock")]
    let soon = Utc::now() + TimeDelta::milliseconds(900);
    body["sendAt"] = json!(soon);
    let id = t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned();
    let path = format!("/jobs/{id}/cancel");
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "r", "scopes": ["read"] })).await.is(201);
    t.call(made["plain"].as_str().unwrap(), "POST", &path, None).await.is(403);
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "s", "scopes": ["send"] })).await.is(201);
    t.call(made["plain"].as_str().unwrap(), "POST", &path, None).await.is(404);

    let job = t.call(&t.key, "POST", &path, None).await.is(200);
    assert_eq!((&job["status"], &job["outcome"]), (&json!("dead"), &json!("cancelled")));
    assert_eq!(job["recipients"][1]["state"], "cancelled");
    assert_eq!(t.call(&t.key, "POST", &path, None).await.is(409)["code"], "NOTHING_WAITS");
    assert_eq!(
        kinds(&t, &id).await,
        ["message.accepted", "recipient.cancelled", "recipient.cancelled", "send.failed"]
    );
    // Another message, due later, leaves: the cancelled one would have been due before it.
    let mut body = message("c@example.net");
    body["sendAt"] = json!(soon + TimeDelta::milliseconds(300));
    let next = t.post("/send", body).await.is(202);
    t.settled(next["id"].as_str().unwrap()).await;
    let received = t.get("/sandbox/messages").await.is(200);
    assert_eq!(received.as_array().unwrap().len(), 1);
    assert_eq!(received[0]["rcptTo"], json!(["c@example.net"]));
    t.stop().await;
}

#[tokio::test]
async fn recipients_already_sent_to_stay_so() {
    let t = TestApp::start().await;
    let rcpt = vec![("later@", "450 4.2.1 try later")];
    let one = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    relay(&t, &one).await;
    let sent = t.post("/send", message("now@example.net, later@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    until(&t, id, |job| job["recipients"][1]["state"] == "deferred").await;
    let job = t.call(&t.key, "POST", &format!("/jobs/{id}/cancel"), None).await.is(200);
    assert_eq!((&job["status"], &job["outcome"]), (&json!("done"), &json!("partial")));
    assert_eq!(job["recipients"][0]["state"], "sent");
    assert_eq!(job["recipients"][1]["state"], "cancelled");
    t.stop().await;
}

#[tokio::test]
async fn after_the_dot_it_is_too_late() {
    let t = TestApp::start().await;
    let slow =
        ScriptedRelay::start(Script { pace: Duration::from_millis(600), ..Script::default() })
            .await;
    relay(&t, &slow).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    until(&t, id, |job| job["recipients"][0]["state"] == "sending").await;
    let refused = t.call(&t.key, "POST", &format!("/jobs/{id}/cancel"), None).await.is(409);
    assert_eq!(refused["code"], "NOTHING_WAITS");
    assert_eq!(t.settled(id).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn where_a_copy_may_have_arrived_cancelled_would_be_a_lie() {
    let t = TestApp::start().await;
    let mute = ScriptedRelay::start(Script { mute_after_dot: true, ..Script::default() }).await;
    relay(&t, &mute).await;
    let mut body = message("a@example.net");
    body["onUnknown"] = json!("resend");
    let sent = t.post("/send", body).await.is(202);
    let id = sent["id"].as_str().unwrap();
    until(&t, id, |job| job["resends"] == 1 && job["status"] == "pending").await;
    let job = t.call(&t.key, "POST", &format!("/jobs/{id}/cancel"), None).await.is(200);
    assert_eq!((&job["status"], &job["outcome"]), (&json!("processing"), &json!("unknown")));
    assert_eq!(job["recipients"][0]["state"], "unknown");
    t.stop().await;
}

/// At whatever moment the word comes, each message is cancelled and did not arrive, or is sent.
#[tokio::test]
async fn a_cancellation_and_the_mark_agree_on_every_message() {
    let t = TestApp::start().await;
    let relayed = ScriptedRelay::start(Script::default()).await;
    relay(&t, &relayed).await;
    let (mut cancelled, mut sent) = (0, 0);
    for round in 0..10_u64 {
        let races = (0..20_u64).map(|n| {
            let t = &t;
            async move {
                let id = t.post("/send", message("a@example.net")).await.is(202)["id"].clone();
                let id = id.as_str().unwrap().to_owned();
                tokio::time::sleep(Duration::from_micros(700 * ((n * 7 + round * 3) % 40))).await;
                let answer = t.call(&t.key, "POST", &format!("/jobs/{id}/cancel"), None).await;
                assert!(matches!(answer.status, 200 | 409), "{}", answer.json);
                let job = t.settled(&id).await;
                let outcome = job["outcome"].as_str().unwrap().to_owned();
                let expected = if answer.status == 200 { "cancelled" } else { "sent" };
                assert_eq!(outcome, expected, "{job:#}");
                outcome
            }
        });
        for outcome in futures_util::future::join_all(races).await {
            match outcome.as_str() {
                "sent" => sent += 1,
                _ => cancelled += 1,
            }
        }
    }
    assert_eq!(relayed.dots(), sent, "what arrived is what is called sent");
    assert!(sent > 0 && cancelled > 0, "no race: {sent} sent, {cancelled} cancelled");
    t.stop().await;
}

async fn until(t: &TestApp, id: &str, is: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        if is(&job) {
            return job;
        }
        assert!(tokio::time::Instant::now() < deadline, "never: {job:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
