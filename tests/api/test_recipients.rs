//! Test recipients: the real code, and no relay.

use serde_json::{Value, json};

use crate::support::{TestApp, message};

const NO_SANDBOX: &[(&str, &str)] = &[("POSTROOM_SANDBOX", "false")];

/// The kinds of events about a message, in their order.
async fn told(t: &TestApp, id: &Value) -> Vec<String> {
    sqlx::query_scalar("select kind from events where subject_id::text = $1 order by event_id")
        .bind(id.as_str().unwrap())
        .fetch_all(&t.db)
        .await
        .unwrap()
}

async fn sent(t: &TestApp, to: &str) -> Value {
    let sent = t.post("/send", message(to)).await.is(202);
    t.settled(sent["id"].as_str().unwrap()).await
}

#[tokio::test]
async fn each_test_address_comes_to_what_it_stands_for_without_a_relay() {
    let t = TestApp::start_with(NO_SANDBOX).await;
    for (to, state, status, last) in [
        ("delivered@test.invalid", "delivered", "done", "recipient.delivered"),
        ("Bounced+a.tag@TEST.invalid", "bounced", "done", "recipient.bounced"),
        ("complained@test.invalid", "complained", "done", "recipient.complained"),
    ] {
        let job = sent(&t, to).await;
        assert_eq!((&job["status"], &job["outcome"]), (&json!(status), &json!("sent")), "{job:#}");
        assert_eq!(job["recipients"][0]["state"], state);
        assert_eq!(job["account"], "test");
        assert_eq!(job["history"][0]["account"], "test");
        assert_eq!(
            told(&t, &job["id"]).await,
            ["message.accepted", "recipient.sent", "send.completed", last]
        );
    }
    let job = sent(&t, "nobody@test.invalid").await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("dead"), &json!("failed")));
    assert_eq!(job["recipients"][0]["code"], 550);
    assert_eq!(told(&t, &job["id"]).await[1..], ["recipient.failed", "send.failed"]);

    let suppressed = message("suppressed@test.invalid");
    let refused = t.post("/send", suppressed.clone()).await.is(422);
    assert_eq!(refused["suppressed"][0]["address"], "suppressed@test.invalid");
    let mut left_out = suppressed;
    left_out["rejectSuppressed"] = json!(false);
    assert_eq!(t.post("/send", left_out).await.is(202)["outcome"], "suppressed");
    let listed: i64 =
        sqlx::query_scalar("select count(*) from suppressions").fetch_one(&t.db).await.unwrap();
    assert_eq!(listed, 0);
    t.stop().await;
}

#[tokio::test]
async fn what_is_deferred_is_tried_again_until_its_window_is_over() {
    let t = TestApp::start_with(NO_SANDBOX).await;
    let job = t.post("/send", message("deferred@test.invalid")).await.is(202);
    let path = format!("/jobs/{}", job["id"].as_str().unwrap());
    for tries in 1..=2 {
        let job = t.until(&path, |job| job["recipients"][0]["tries"] == tries).await;
        assert_eq!(job["recipients"][0]["state"], "deferred");
        assert_eq!(job["recipients"][0]["code"], 450);
        t.pass(1).await;
    }
    t.pass(24 * 6).await;
    let job = t.settled(job["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "failed", "{job:#}");
    t.stop().await;
}

#[tokio::test]
async fn test_and_real_recipients_go_their_own_ways_in_one_message() {
    let t = TestApp::start().await;
    let job = sent(&t, "a@example.net, bounced@test.invalid, no@test.invalid, b@example.net").await;
    let states: Vec<&str> = job["recipients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["sent", "bounced", "failed", "sent"]);
    assert_eq!(job["outcome"], "partial");
    let received = t.get("/sandbox/messages").await.is(200);
    assert_eq!(received[0]["rcptTo"], json!(["a@example.net", "b@example.net"]));
    assert_eq!(received.as_array().unwrap().len(), 1);
    t.stop().await;
}

#[tokio::test]
async fn a_test_needs_no_relay_but_a_sender_that_the_key_permits() {
    let t = TestApp::start_with(NO_SANDBOX).await;
    let new = json!({ "name": "bound", "scopes": ["send"], "senderDomains": ["example.org"] });
    let made = t.post("/admin/api/api-keys", new).await.is(201);
    let bound = made["plain"].as_str().unwrap();
    let mut body = message("delivered@test.invalid");
    t.call(bound, "POST", "/send", Some(body.clone())).await.is(403);
    body["from"] = json!("app@example.org");
    let planned = t.call(bound, "POST", "/send?dryRun", Some(body.clone())).await.is(200);
    assert_eq!((&planned["relays"], &planned["recipients"][0]["by"]), (&json!([]), &json!("test")));
    t.call(bound, "POST", "/send", Some(body)).await.is(202);
    // With one real recipient a relay is needed, and none is there.
    let mixed = message("delivered@test.invalid, a@example.net");
    assert_eq!(t.post("/send", mixed).await.is(400)["code"], "FROM_NOT_ALLOWED");
    t.stop().await;
}

#[tokio::test]
async fn a_test_waits_for_no_relay() {
    let t = TestApp::start().await;
    let mute = crate::support::relay::ScriptedRelay::start(crate::support::relay::Script {
        mute: true,
        ..Default::default()
    })
    .await;
    let new = json!({
        "name": "mute", "host": "127.0.0.1", "port": mute.port, "secure": false, "fromAddress": "app@example.com",
        "domain": "example.com", "priority": 1, "maxConnections": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    for _ in 0..3 {
        t.post("/send", message("a@example.net")).await.is(202);
    }
    let begun = std::time::Instant::now();
    sent(&t, "delivered@test.invalid").await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    let waiting = t.get("/jobs").await.is(200);
    assert_eq!(waiting.as_array().unwrap().iter().filter(|it| it["status"] == "done").count(), 1);
    t.stop().await;
}
